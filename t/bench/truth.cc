/*
 * A plugin for gcc: notes every value that the source gives an integer variable
 * that has a name, before anything is optimised (truth.c keeps the smallest and
 * largest). t/bench/ranges.sh compares what -m range finds with that.
 *
 * Noted are what assignments and calls give to variables, to members of structs
 * that are variables, and to elements of arrays; parameters when a function
 * begins; and what is read of variables that others can write: of those no more
 * is known. Members of unions and what pointers lead to are not.
 *
 * $SMCO_TRUTH_LIST is the list of variables, of lines of 256 bytes: their
 * numbers are counted through all files of a program.
 */
#include <gcc-plugin.h>
#include <plugin-version.h>
#include <tree.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <tree-cfg.h>
#include <tree-pass.h>
#include <context.h>
#include <stringpool.h>
#include <gimplify.h>
#include <cgraph.h>
#include <langhooks.h>

#include <fcntl.h>
#include <map>
#include <string>
#include <sys/file.h>
#include <unistd.h>

#define LINE 256

int plugin_is_GPL_compatible;
static const char *list;
static tree note_decl;

static unsigned number_of(const std::string &what)
{
	static std::map<std::string, unsigned> known;
	auto it = known.find(what);
	if (it != known.end())
		return it->second;
	char line[LINE + 1];
	int fd = open(list, O_RDWR | O_CREAT | O_APPEND, 0666);
	if (fd < 0 || flock(fd, LOCK_EX))
		abort();
	unsigned number = lseek(fd, 0, SEEK_END) / LINE;
	snprintf(line, sizeof(line), "%-255.255s\n", what.c_str());
	if (write(fd, line, LINE) != LINE)
		abort();
	close(fd);
	return known[what] = number;
}

static bool is_integer(tree type)
{
	return INTEGRAL_TYPE_P(type) && TYPE_PRECISION(type) > 0 &&
	       TYPE_PRECISION(type) <= 64;
}

/* The variable that @ref is, or is a part of, if that can be named as
 * smco-report does: the rest of its name. Else NULL_TREE. */
static tree variable_of(tree ref, std::string *rest_ret)
{
	std::string rest;
	for (;; ref = TREE_OPERAND(ref, 0)) {
		if (TREE_CODE(ref) == ARRAY_REF) {
			rest = "[]" + rest;
			continue;
		}
		if (TREE_CODE(ref) != COMPONENT_REF)
			break;
		tree field = TREE_OPERAND(ref, 1);
		if (TREE_CODE(TREE_TYPE(TREE_OPERAND(ref, 0))) == UNION_TYPE)
			return NULL_TREE;
		if (DECL_NAME(field))
			rest = std::string(".") +
			       IDENTIFIER_POINTER(DECL_NAME(field)) + rest;
	}
	*rest_ret = rest;
	bool named =
		(TREE_CODE(ref) == VAR_DECL || TREE_CODE(ref) == PARM_DECL) &&
		DECL_NAME(ref) && !DECL_ARTIFICIAL(ref) && !DECL_IGNORED_P(ref);
	return named ? ref : NULL_TREE;
}

static bool is_local(tree variable)
{
	tree where = DECL_CONTEXT(variable);
	return where && TREE_CODE(where) == FUNCTION_DECL;
}

/* Others may write to it: another function, or who has its address. */
static bool is_shared(tree variable)
{
	return TREE_CODE(variable) == VAR_DECL &&
	       (TREE_ADDRESSABLE(variable) || TREE_STATIC(variable) ||
		DECL_EXTERNAL(variable));
}

/* Name, place of its declaration, and as what it begins if that can be told. */
static std::string describe(tree variable, const std::string &rest)
{
	expanded_location at = expand_location(DECL_SOURCE_LOCATION(variable));
	const char *slash = at.file ? strrchr(at.file, '/') : NULL;
	std::string text;
	if (is_local(variable))
		text = std::string(lang_hooks.decl_printable_name(
			       DECL_CONTEXT(variable), 1)) +
		       "::";
	text += IDENTIFIER_POINTER(DECL_NAME(variable)) + rest + "\t";
	text += std::string(slash     ? slash + 1
			    : at.file ? at.file
				      : "?") +
		":" + std::to_string(at.line);
	bool lasts = TREE_CODE(variable) == VAR_DECL &&
		     (TREE_STATIC(variable) || DECL_EXTERNAL(variable));
	tree first = lasts ? DECL_INITIAL(variable) : NULL_TREE;
	if (first && TREE_CODE(first) == INTEGER_CST)
		text += "\t" +
			(TYPE_UNSIGNED(TREE_TYPE(first))
				 ? std::to_string(TREE_INT_CST_LOW(first))
				 : std::to_string(
					   (long long)TREE_INT_CST_LOW(first)));
	else if (first && first != error_mark_node)
		text += "\t?"; /* several values */
	else if (lasts || is_shared(variable))
		text += "\t0";
	return text;
}

/* Code that notes what is in @ref, or in each integer member of it. */
static void note(gimple_seq *seq, tree ref)
{
	tree type = TREE_TYPE(ref);
	std::string rest;
	tree variable = variable_of(ref, &rest);
	if (!variable)
		return;
	if (TREE_CODE(type) == RECORD_TYPE) {
		for (tree f = TYPE_FIELDS(type); f; f = DECL_CHAIN(f))
			if (TREE_CODE(f) == FIELD_DECL && DECL_NAME(f))
				note(seq,
				     build3(COMPONENT_REF, TREE_TYPE(f),
					    unshare_expr(ref), f, NULL_TREE));
		return;
	}
	if (!is_integer(type))
		return;
	tree value = create_tmp_var(type, "truth");
	tree wide = create_tmp_var(long_long_integer_type_node, "truth");
	unsigned number = number_of(describe(variable, rest));
	gimple_seq_add_stmt(seq, gimple_build_assign(value, unshare_expr(ref)));
	gimple_seq_add_stmt(seq, gimple_build_assign(wide, NOP_EXPR, value));
	gimple_seq_add_stmt(
		seq,
		gimple_build_call(
			note_decl, 3, build_int_cst(unsigned_type_node, number),
			wide,
			build_int_cst(integer_type_node, TYPE_UNSIGNED(type))));
}

/* Before @gsi's statement what it reads, behind it what it gives. */
static void note_statement(gimple_stmt_iterator *gsi)
{
	gimple *s = gsi_stmt(*gsi);
	gimple_seq before = NULL, behind = NULL;
	std::string rest;
	edge e;
	edge_iterator ei;
	if (gimple_clobber_p(s) || !(is_gimple_assign(s) || is_gimple_call(s)))
		return;
	if (gimple_assign_single_p(s)) {
		tree from = gimple_assign_rhs1(s);
		tree variable =
			is_integer(TREE_TYPE(from)) && !TREE_THIS_VOLATILE(from)
				? variable_of(from, &rest)
				: NULL_TREE;
		if (variable && is_shared(variable))
			note(&before, from);
	}
	if (before)
		gsi_insert_seq_before(gsi, before, GSI_SAME_STMT);
	if (gimple_get_lhs(s))
		note(&behind, gimple_get_lhs(s));
	if (behind && !stmt_ends_bb_p(s)) {
		gsi_insert_seq_after(gsi, behind, GSI_CONTINUE_LINKING);
	} else if (behind) {
		FOR_EACH_EDGE(e, ei, gimple_bb(s)->succs)
		if (e->flags & EDGE_FALLTHRU)
			gsi_insert_seq_on_edge(e, behind);
	}
}

static unsigned note_function(void)
{
	basic_block bb;
	gimple_seq seq = NULL;
	FOR_EACH_BB_FN(bb, cfun)
	for (gimple_stmt_iterator gsi = gsi_start_bb(bb); !gsi_end_p(gsi);
	     gsi_next(&gsi))
		note_statement(&gsi);
	for (tree p = DECL_ARGUMENTS(current_function_decl); p;
	     p = DECL_CHAIN(p))
		note(&seq, p);
	if (seq)
		gsi_insert_seq_on_edge(
			single_succ_edge(ENTRY_BLOCK_PTR_FOR_FN(cfun)), seq);
	gsi_commit_edge_inserts();
	return 0;
}

static const pass_data data = {
	GIMPLE_PASS, "truth", OPTGROUP_NONE, TV_NONE, PROP_cfg, 0, 0, 0, 0};
struct truth_pass : gimple_opt_pass {
	truth_pass() : gimple_opt_pass(data, g)
	{
	}
	unsigned execute(function *) override
	{
		return note_function();
	}
};

static void declare_note(void *, void *)
{
	note_decl = build_fn_decl(
		"smco_truth_note",
		build_function_type_list(void_type_node, unsigned_type_node,
					 long_long_integer_type_node,
					 integer_type_node, NULL_TREE));
	TREE_NOTHROW(note_decl) = 1;
}

int plugin_init(plugin_name_args *info, plugin_gcc_version *version)
{
	list = getenv("SMCO_TRUTH_LIST");
	if (!list || !plugin_default_version_check(version, &gcc_version))
		return 1;
	register_pass_info pass = {new truth_pass, "*build_cgraph_edges", 1,
				   PASS_POS_INSERT_BEFORE};
	register_callback(info->base_name, PLUGIN_PASS_MANAGER_SETUP, NULL,
			  &pass);
	register_callback(info->base_name, PLUGIN_START_UNIT, declare_note,
			  NULL);
	return 0;
}
