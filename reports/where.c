#include "reports/where.h"

#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/pattern.h"
#include "reports/quantity.h"

enum op {
	OP_OR,
	OP_AND,
	OP_NOT,
	OP_FLAG, /* a column alone */
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_MATCH,
	OP_NO_MATCH,
};

struct node {
	enum op op;
	uint32_t left, right; /* nodes of OR, AND, NOT */
	uint32_t column;      /* of all others */
	bool against_column;
	uint32_t other;	      /* the column on the right side */
	struct value literal; /* if it is none; its text is owned */
	regex_t *regex;	      /* owned */
};

struct where {
	const struct column *columns;
	struct node *node; /* room for WHERE_MAX_NODES */
	uint32_t nr, root;
};

struct parser {
	struct where *w;
	const struct column *columns;
	size_t nr_columns;
	const char *text;
	size_t at;
	unsigned depth;
	struct smco_err *err;
};

static int wrong(struct parser *p, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int wrong(struct parser *p, size_t at, const char *fmt, ...)
{
	char msg[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return smco_fail(p->err, SMCO_FORMAT, 0, "character %zu: %s", at + 1,
			 msg);
}

/* -------------------------------------------------------------- reading --- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->text + p->at, " \t\n");
}

/* Takes @token if it stands here. */
static bool take(struct parser *p, const char *token)
{
	size_t n = strlen(token);
	skip_blanks(p);
	if (strncmp(p->text + p->at, token, n))
		return false;
	p->at += n;
	return true;
}

static size_t word_length(const struct parser *p)
{
	size_t n = 0;
	while (is_word(p->text[p->at + n]))
		n++;
	return n;
}

/* What stands here, as one quotes it. */
static const char *here(struct parser *p, char buf[32])
{
	char piece[24], quote[24];
	skip_blanks(p);
	size_t n = word_length(p);
	if (!p->text[p->at])
		return "the end";
	snprintf(piece, sizeof(piece), "%.*s", n ? (int)n : 1, p->text + p->at);
	snprintf(buf, 32, "'%s'", quantity_quote(piece, quote, sizeof(quote)));
	return buf;
}

static int take_column(struct parser *p, uint32_t *ret)
{
	char names[200], name[32];
	skip_blanks(p);
	size_t n = word_length(p);
	size_t c = column_find(p->columns, p->nr_columns, p->text + p->at, n);
	if (!n)
		return wrong(p, p->at, "expected a column, not %s",
			     here(p, name));
	if (c == p->nr_columns)
		return wrong(p, p->at, "there is no column %s (%s)",
			     here(p, name),
			     column_names(p->columns, p->nr_columns, names,
					  sizeof(names)));
	p->at += n;
	*ret = (uint32_t)c;
	return 0;
}

static enum op take_op(struct parser *p)
{
	/* Longer ones first. */
	static const struct {
		const char *text;
		enum op op;
	} ops[] = {
		{"==", OP_EQ}, {"!=", OP_NE},	    {"<=", OP_LE},
		{">=", OP_GE}, {"!~", OP_NO_MATCH}, {"<", OP_LT},
		{">", OP_GT},  {"~", OP_MATCH},
	};
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (take(p, ops[i].text))
			return ops[i].op;
	return OP_FLAG;
}

/* ------------------------------------------------------------- literals --- */

static int take_text(struct parser *p, struct value *ret)
{
	size_t start = p->at;
	char quote = p->text[p->at++];
	char *text = malloc(strlen(p->text + p->at) + 1);
	size_t n = 0;
	if (!text)
		return smco_fail(p->err, SMCO_NOMEM, 0, "out of memory");
	for (;; p->at++) {
		char c = p->text[p->at], next = c ? p->text[p->at + 1] : 0;
		if (!c) {
			free(text);
			return wrong(p, start, "the text has no end");
		}
		if (c == quote)
			break;
		if (c == '\\' && (next == '"' || next == '\'' || next == '\\'))
			c = p->text[++p->at];
		text[n++] = c;
	}
	p->at++;
	text[n] = '\0';
	value_text(ret, text);
	return 0;
}

static int take_plain(const char *word, enum kind kind, struct value *ret)
{
	unsigned long long v = 0;
	int used = 0;
	int base = !strncmp(word, "0x", 2) ? 16 : 10;
	char *end;
	if (base == 10 && kind != KIND_ADDRESS) {
		/* Counts may have decimals, nothing else. */
		size_t n = strspn(word, "0123456789");
		n += word[n] == '.' ? 1 + strspn(word + n + 1, "0123456789")
				    : 0;
		long double d;
		if (word[n] || n > 40 || sscanf(word, "%Lf%n", &d, &used) != 1)
			return SMCO_FORMAT;
		value_number(ret, d);
		return 0;
	}
	v = strtoull(word + (base == 16 ? 2 : 0), &end, base);
	if (*end || end == word + (base == 16 ? 2 : 0))
		return SMCO_FORMAT;
	value_number(ret, v);
	return 0;
}

static int take_number(struct parser *p, const struct column *c,
		       struct value *ret)
{
	static const char *const what[] = {
		[KIND_COUNT] = "a number",
		[KIND_BYTES] = "a size (as 64K, 1.5M)",
		[KIND_TIME] = "a time with its unit (as 500ms, 2s, 5m)",
		[KIND_SHARE] = "a share (as 10%)",
		[KIND_BYTE_SECONDS] = "an amount (as 64K, 1.5M)",
		[KIND_FACTOR] = "a number",
		[KIND_ADDRESS] = "an address (as 0x7f00)",
		[KIND_FLAG] = "true or false",
	};
	char word[64], quote[64];
	size_t start = p->at, n = 0;
	uint64_t u = 0;
	int64_t ppb = 0;
	int rc = SMCO_FORMAT;
	while (is_word(p->text[p->at + n]) || p->text[p->at + n] == '.' ||
	       p->text[p->at + n] == '%')
		n++;
	snprintf(word, sizeof(word), "%.*s", (int)(n < 63 ? n : 63),
		 p->text + p->at);
	p->at += n;
	switch (c->kind) {
	case KIND_BYTES:
	case KIND_BYTE_SECONDS:
		rc = quantity_size(word, &u, NULL);
		value_number(ret, u);
		break;
	case KIND_TIME:
		/* Seconds or nanoseconds? Who reads it later must not guess. */
		if (strspn(word, "0123456789.") < strlen(word) ||
		    !strcmp(word, "0"))
			rc = quantity_time(word, &u, NULL);
		value_number(ret, u);
		break;
	case KIND_SHARE:
		rc = quantity_percent(word, 1000000000, &ppb, NULL);
		value_number(ret, ppb);
		break;
	case KIND_COUNT:
	case KIND_FACTOR:
	case KIND_ADDRESS:
		rc = take_plain(word, c->kind, ret);
		break;
	case KIND_FLAG:
	case KIND_TEXT:
		break;
	}
	if (!rc)
		return 0;
	if (c->kind == KIND_TEXT)
		return wrong(p, start,
			     "%s is a text: compare it with one in "
			     "quotes",
			     c->name);
	return wrong(p, start, "%s is %s, '%s' is none", c->name, what[c->kind],
		     quantity_quote(word, quote, sizeof(quote)));
}

/* ----------------------------------------------------- tests of a column ---
 */

static int compile(struct parser *p, size_t at, struct node *n)
{
	char why[100];
	const char *problem = pattern_problem(n->literal.text);
	if (problem)
		return wrong(p, at, "%s", problem);
	regex_t *re = calloc(1, sizeof(*re));
	if (!re)
		return smco_fail(p->err, SMCO_NOMEM, 0, "out of memory");
	int rc = regcomp(re, n->literal.text, REG_EXTENDED | REG_NOSUB);
	if (rc) {
		regerror(rc, re, why, sizeof(why));
		free(re);
		return wrong(p, at, "regular expression: %s", why);
	}
	n->regex = re;
	return 0;
}

static int check_test(struct parser *p, size_t at, struct node *n)
{
	const struct column *c = &p->columns[n->column];
	bool text = c->kind == KIND_TEXT;
	if ((n->op == OP_MATCH || n->op == OP_NO_MATCH) &&
	    (!text || n->against_column || !n->literal.text))
		return wrong(p, at, "~ finds a \"pattern\" in a text");
	if (n->against_column && p->columns[n->other].kind != c->kind)
		return wrong(p, at, "%s and %s are not of one kind", c->name,
			     p->columns[n->other].name);
	if (!n->against_column && (n->literal.text != NULL) != text)
		return wrong(p, at, "%s is %s text", c->name,
			     text ? "a" : "no");
	if (n->op == OP_MATCH || n->op == OP_NO_MATCH)
		return compile(p, at, n);
	return 0;
}

static int take_operand(struct parser *p, struct node *n)
{
	char c;
	skip_blanks(p);
	c = p->text[p->at];
	if (c == '"' || c == '\'')
		return take_text(p, &n->literal);
	if ((c >= '0' && c <= '9') || c == '.')
		return take_number(p, &p->columns[n->column], &n->literal);
	size_t len = word_length(p);
	if (p->columns[n->column].kind == KIND_FLAG &&
	    ((len == 4 && !strncmp(p->text + p->at, "true", 4)) ||
	     (len == 5 && !strncmp(p->text + p->at, "false", 5)))) {
		value_number(&n->literal, len == 4);
		p->at += len;
		return 0;
	}
	n->against_column = true;
	return take_column(p, &n->other);
}

static int new_node(struct parser *p, enum op op, uint32_t *ret)
{
	struct where *w = p->w;
	if (w->nr >= WHERE_MAX_NODES)
		return wrong(p, p->at, "the condition is too long");
	*ret = w->nr++;
	w->node[*ret] = (struct node){.op = op};
	return 0;
}

static int take_test(struct parser *p, uint32_t *ret)
{
	int rc = new_node(p, OP_FLAG, ret);
	if (rc)
		return rc;
	struct node *n = &p->w->node[*ret];
	skip_blanks(p);
	size_t start = p->at;
	rc = take_column(p, &n->column);
	if (rc)
		return rc;
	const struct column *c = &p->columns[n->column];
	n->op = take_op(p);
	if (n->op == OP_FLAG) {
		char buf[32];
		if (c->kind == KIND_FLAG)
			return 0;
		return wrong(p, p->at, "expected a comparison after %s, not %s",
			     c->name, here(p, buf));
	}
	rc = take_operand(p, n);
	return rc ? rc : check_test(p, start, n);
}

/* ------------------------------------------------------------- structure ---
 */

static int take_or(struct parser *p, uint32_t *ret);

static int take_not(struct parser *p, uint32_t *ret)
{
	char buf[32];
	int rc;
	skip_blanks(p);
	if (p->depth >= WHERE_MAX_DEPTH)
		return wrong(p, p->at, "nested too deeply");
	p->depth++;
	if (take(p, "!")) {
		uint32_t n;
		rc = new_node(p, OP_NOT, &n);
		if (!rc)
			rc = take_not(p, &p->w->node[n].left);
		*ret = n;
	} else if (take(p, "(")) {
		rc = take_or(p, ret);
		if (!rc && !take(p, ")"))
			rc = wrong(p, p->at, "expected ')', not %s",
				   here(p, buf));
	} else {
		rc = take_test(p, ret);
	}
	p->depth--;
	return rc;
}

/* Operands of @take joined by @token. */
static int take_chain(struct parser *p, const char *token, enum op op,
		      int (*operand)(struct parser *, uint32_t *),
		      uint32_t *ret)
{
	int rc = operand(p, ret);
	while (!rc && take(p, token)) {
		uint32_t n, right;
		rc = new_node(p, op, &n);
		if (!rc)
			rc = operand(p, &right);
		if (rc)
			break;
		p->w->node[n].left = *ret;
		p->w->node[n].right = right;
		*ret = n;
	}
	return rc;
}

static int take_and(struct parser *p, uint32_t *ret)
{
	return take_chain(p, "&&", OP_AND, take_not, ret);
}

static int take_or(struct parser *p, uint32_t *ret)
{
	return take_chain(p, "||", OP_OR, take_and, ret);
}

int where_parse(const char *text, const struct column *columns, size_t nr,
		struct where **ret, struct smco_err *err)
{
	char buf[32];
	struct where *w = calloc(1, sizeof(*w));
	struct parser p = {.w = w,
			   .columns = columns,
			   .nr_columns = nr,
			   .text = text,
			   .err = err};
	if (w)
		w->node = calloc(WHERE_MAX_NODES, sizeof(*w->node));
	if (!w || !w->node) {
		where_free(w);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	w->columns = columns;
	int rc = strlen(text) <= WHERE_MAX_LENGTH
			 ? take_or(&p, &w->root)
			 : wrong(&p, WHERE_MAX_LENGTH,
				 "the condition is too long");
	skip_blanks(&p);
	if (!rc && text[p.at] == '=')
		rc = wrong(&p, p.at, "write == for equality");
	else if (!rc && text[p.at])
		rc = wrong(&p, p.at, "expected && or ||, not %s",
			   here(&p, buf));
	if (rc)
		where_free(w);
	else
		*ret = w;
	return rc;
}

void where_free(struct where *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->nr && w->node; i++) {
		struct node *n = &w->node[i];
		free((void *)n->literal.text);
		if (n->regex)
			regfree(n->regex);
		free(n->regex);
	}
	free(w->node);
	free(w);
}

/* ------------------------------------------------------------ evaluating ---
 */

static bool test(const struct where *w, const struct node *n, value_fn *get,
		 const void *ctx, const void *item)
{
	struct value a, b;
	enum kind kind = w->columns[n->column].kind;
	a.known = b.known = false;
	get(ctx, item, n->column, &a);
	if (!a.known)
		return false;
	if (n->op == OP_FLAG)
		return a.number != 0;
	if (n->op == OP_MATCH || n->op == OP_NO_MATCH)
		return !regexec(n->regex, a.text, 0, NULL, 0) ==
		       (n->op == OP_MATCH);
	if (n->against_column)
		get(ctx, item, n->other, &b);
	if (n->against_column && !b.known)
		return false;
	int c = value_compare(&a, n->against_column ? &b : &n->literal, kind);
	switch (n->op) {
	case OP_EQ:
		return c == 0;
	case OP_NE:
		return c != 0;
	case OP_LT:
		return c < 0;
	case OP_LE:
		return c <= 0;
	case OP_GT:
		return c > 0;
	default:
		return c >= 0;
	}
}

static bool holds(const struct where *w, uint32_t at, value_fn *get,
		  const void *ctx, const void *item)
{
	const struct node *n = &w->node[at];
	switch (n->op) {
	case OP_OR:
		return holds(w, n->left, get, ctx, item) ||
		       holds(w, n->right, get, ctx, item);
	case OP_AND:
		return holds(w, n->left, get, ctx, item) &&
		       holds(w, n->right, get, ctx, item);
	case OP_NOT:
		return !holds(w, n->left, get, ctx, item);
	default:
		return test(w, n, get, ctx, item);
	}
}

bool where_matches(const struct where *w, value_fn *get, const void *ctx,
		   const void *item)
{
	return holds(w, w->root, get, ctx, item);
}
