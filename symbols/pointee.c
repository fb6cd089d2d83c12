#include "symbols/pointee.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarfdie.h"
#include "symbols/space.h"
#include "symbols/varbuild.h"

#define MAX_EXPR    200
#define MAX_NESTING 8 /* members without a name in each other */

struct finder {
	Dwarf *dwarf;
	uint32_t steps_left;
	const char *expr; /* as it was given, for messages */
};

/* The next name of *@at, at most MAX_EXPR bytes with its NUL. */
static bool take_name(const char **at, char *ret)
{
	size_t n = 0;
	const char *p = *at;
	if (!isalpha((unsigned char)*p) && *p != '_')
		return false;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	memcpy(ret, p, n);
	ret[n] = '\0';
	*at = p + n;
	return true;
}

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute mem;
	return dwarf_attr_integrate(die, DW_AT_type, &mem) &&
	       dwarf_formref_die(&mem, ret);
}

/* Without typedefs and qualifiers. */
static bool bare_type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Die type;
	return type_of(die, &type) && dwarf_peel_type(&type, ret) == 0;
}

static bool is_named(Dwarf_Die *die, const char *name)
{
	const char *own = dwarf_diename(die);
	return own && !strcmp(own, name);
}

static bool step(struct finder *f)
{
	return f->steps_left && f->steps_left--;
}

/* The next unit's tree; false: there is none. */
static bool next_unit(struct finder *f, Dwarf_CU **cu, Dwarf_Die *child)
{
	Dwarf_Die die;
	while (step(f) &&
	       dwarf_get_units(f->dwarf, *cu, cu, NULL, NULL, &die, NULL) == 0)
		if (dwarf_child(&die, child) == 0)
			return true;
	return false;
}

static bool is_struct(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
}

/* A struct that is only declared here may be whole in another unit. */
static bool complete(struct finder *f, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	Dwarf_CU *cu = NULL;
	Dwarf_Die d;
	if (!dwarf_hasattr(die, DW_AT_declaration))
		return true;
	while (name && next_unit(f, &cu, &d))
		do {
			if (!is_struct(&d) || !is_named(&d, name) ||
			    dwarf_hasattr(&d, DW_AT_declaration))
				continue;
			*die = d;
			return true;
		} while (step(f) && die_next(&d));
	return false;
}

/* Where in its struct; a constant always. */
static bool member_offset(Dwarf_Die *member, uint64_t *ret)
{
	Dwarf_Attribute mem;
	Dwarf_Word value;
	*ret = 0;
	if (!dwarf_attr(member, DW_AT_data_member_location, &mem))
		return true;
	if (dwarf_formudata(&mem, &value))
		return false;
	*ret = value;
	return true;
}

/* Member @name of struct @die, also of one in it that has no name. */
static bool find_member(struct finder *f, Dwarf_Die *die, const char *name,
			unsigned depth, Dwarf_Die *ret, uint64_t *offset)
{
	Dwarf_Die m, inner;
	uint64_t at;
	if (depth > MAX_NESTING || !is_struct(die) || dwarf_child(die, &m))
		return false;
	do {
		if (dwarf_tag(&m) != DW_TAG_member || !member_offset(&m, &at))
			continue;
		if (is_named(&m, name)) {
			*ret = m;
			*offset += at;
			return true;
		}
		if (!dwarf_diename(&m) && bare_type_of(&m, &inner) &&
		    find_member(f, &inner, name, depth + 1, ret, offset)) {
			*offset += at;
			return true;
		}
	} while (step(f) && die_next(&m));
	return false;
}

/* The address of a variable of file level that lies in memory for good. */
static bool address_of(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute mem;
	Dwarf_Op *ops;
	size_t nr;
	if (!die_expression(dwarf_attr_integrate(die, DW_AT_location, &mem)) ||
	    dwarf_getlocation(&mem, &ops, &nr) || nr != 1 ||
	    ops[0].atom != DW_OP_addr)
		return false;
	*ret = ops[0].number;
	return true;
}

static bool find_root(struct finder *f, const char *name, Dwarf_Die *ret,
		      uint64_t *addr)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die d;
	while (next_unit(f, &cu, &d))
		do {
			if (dwarf_tag(&d) != DW_TAG_variable ||
			    !is_named(&d, name) || !address_of(&d, addr))
				continue;
			*ret = d;
			return true;
		} while (step(f) && die_next(&d));
	return false;
}

/* What the integer @die is; false: it is none. */
static bool integer_type(Dwarf_Die *die, struct var_type *t)
{
	Dwarf_Attribute mem;
	Dwarf_Word encoding = DW_ATE_unsigned;
	Dwarf_Die type;
	int size;
	if (!bare_type_of(die, &type) || dwarf_hasattr(die, DW_AT_bit_size))
		return false;
	bool is_enum = dwarf_tag(&type) == DW_TAG_enumeration_type;
	if (!is_enum && dwarf_tag(&type) != DW_TAG_base_type)
		return false;
	size = dwarf_bytesize(&type);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	if (dwarf_attr(&type, DW_AT_encoding, &mem))
		dwarf_formudata(&mem, &encoding);
	t->width = (uint8_t)size;
	t->class_ = VAR_INT;
	t->is_signed =
		encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (encoding == DW_ATE_signed_char || encoding == DW_ATE_unsigned_char)
		t->class_ = VAR_CHAR;
	else if (encoding == DW_ATE_boolean)
		t->class_ = VAR_BOOL;
	else if (encoding != DW_ATE_signed && encoding != DW_ATE_unsigned)
		return false;
	return true;
}

/* One "->name" or ".name" behind @die, which becomes that member. */
static int go_on(struct finder *f, struct pointee *p, bool points,
		 const char *name, Dwarf_Die *die, struct smco_err *err)
{
	Dwarf_Die type, member;
	if (!bare_type_of(die, &type) ||
	    points != (dwarf_tag(&type) == DW_TAG_pointer_type))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s': what is before '%s%s' is %s pointer",
				 f->expr, points ? "->" : ".", name,
				 points ? "no" : "a");
	if (points) {
		Dwarf_Die pointer = type;
		if (p->nr_derefs == POINTEE_MAX_DEREFS)
			return smco_fail(err, SMCO_FORMAT, 0,
					 "'%s': at most %d pointers", f->expr,
					 POINTEE_MAX_DEREFS);
		p->nr_derefs++;
		if (!bare_type_of(&pointer, &type))
			return smco_fail(
				err, SMCO_FORMAT, 0,
				"'%s': to what is before '->%s' points "
				"is not known",
				f->expr, name);
	}
	if (!complete(f, &type) ||
	    !find_member(f, &type, name, 0, &member, &p->offset[p->nr_derefs]))
		return smco_fail(
			err, SMCO_FORMAT, 0,
			"'%s': no member '%s' of struct %s", f->expr, name,
			dwarf_diename(&type) ? dwarf_diename(&type) : "{...}");
	*die = member;
	return 0;
}

static int describe(struct finder *f, struct pointee *p, Dwarf_Die *die,
		    struct smco_err *err)
{
	Dwarf_Die type;
	int line = 0;
	if (!integer_type(die, &p->type))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s' is no integer, or a bit-field", f->expr);
	const char *file = dwarf_decl_file(die);
	const char *name = type_of(die, &type) ? dwarf_diename(&type) : NULL;
	p->file = strdup(file ? file : "");
	p->type_name = strdup(name ? name : "");
	p->line = dwarf_decl_line(die, &line) ? 0 : (uint32_t)line;
	p->type.name = p->type_name;
	return p->file && p->type_name
		       ? 0
		       : smco_fail(err, SMCO_NOMEM, 0, "out of memory");
}

static int follow(struct finder *f, struct pointee *p, struct smco_err *err)
{
	const char *at = p->name;
	char name[MAX_EXPR];
	Dwarf_Die die;
	if (!take_name(&at, name))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s': write it as variable->member.member",
				 f->expr);
	if (!find_root(f, name, &die, &p->root))
		return smco_fail(err, SMCO_FORMAT, 0,
				 "'%s': no variable '%s' outside of functions",
				 f->expr, name);
	while (*at) {
		bool points = at[0] == '-' && at[1] == '>';
		at += points ? 2 : 1;
		if ((!points && at[-1] != '.') || !take_name(&at, name))
			return smco_fail(err, SMCO_FORMAT, 0,
					 "'%s': write it as "
					 "variable->member.member",
					 f->expr);
		int rc = go_on(f, p, points, name, &die, err);
		if (rc)
			return rc;
	}
	return describe(f, p, &die, err);
}

int pointee_find(struct sym_space *s, uint32_t module, const char *expr,
		 struct pointee *ret, struct smco_err *err)
{
	struct finder f = {.steps_left = VAR_MAX_STEPS, .expr = expr};
	*ret = (struct pointee){.nr_derefs = 0};
	struct module *m = space_module(s, module);
	Elf *elf = m && m->is_elf ? var_dwarf_elf(s, m) : NULL;
	if (!elf)
		return smco_fail(err, SMCO_NOTFOUND, 0,
				 "'%s': no debug information", expr);
	f.dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	size_t n = 0;
	ret->name = strdup(expr);
	for (const char *p = expr; ret->name && *p; p++)
		if (!isspace((unsigned char)*p))
			ret->name[n++] = *p;
	int rc;
	if (!ret->name)
		rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	else if (!f.dwarf || n >= MAX_EXPR)
		rc = smco_fail(err, SMCO_FORMAT, 0, "'%s': %s", expr,
			       f.dwarf ? "too long"
				       : "debug information cannot be read");
	else {
		ret->name[n] = '\0';
		rc = follow(&f, ret, err);
	}
	dwarf_end(f.dwarf);
	elf_end(elf);
	if (rc)
		pointee_deinit(ret);
	return rc;
}

void pointee_deinit(struct pointee *p)
{
	free(p->name);
	free(p->type_name);
	free(p->file);
	*p = (struct pointee){.nr_derefs = 0};
}
