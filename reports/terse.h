/*
 * terse.h - a JSON document for a page: less than half as long, and cut into
 * parts that are read when they are needed. Nothing of it is changed, nor its
 * order. Of the document, an object, each member KEY becomes
 *
 *	<script type="application/json" id="data-KEY">PART</script>
 *
 * and PART is, with each text and each set of keys once,
 *
 *	{"data": VALUE, "shapes": [[KEY, ...], ...], "texts": [TEXT, ...]}
 *
 * A VALUE is for each
 *
 *	object	[VALUE, ..., N]: the values of the keys of shape N. A key is led
 *		by '$' where the value is a text, and stands as its number
 *		among the texts; by '#' where it is an array that begins with a
 *		number or an array, and stands as a text of its own, to be read
 *		later; by '.' where it is anything else.
 *	array	[VALUE, ..., -1]
 *	other	the same (texts, too, that are no values of keys)
 *
 * There is no '<' in it: the script element must not end, nor another begin,
 * within it. Keys of the document itself must be such as an id may be.
 */
#ifndef SMCO_TERSE_H
#define SMCO_TERSE_H

#include <stdio.h>

/*
 * Write a JSON document into what is returned; fclose() it, which writes what
 * is left and leaves @out open. What it wrote is whole if neither of the two
 * has an error, and no memory was short (shortage.h). NULL: out of memory.
 */
FILE *terse_open(FILE *out);

#endif
