/*
 * schema-file.h - event schemas as a trace has them: written from the table in
 * schema.h, read into a table of the file's own, by which its records are
 * decoded. So a reader can decode events, and fields of events, that it does
 * not know. FORMAT.md, "Schema", is normative.
 */
#ifndef SMCO_SCHEMA_FILE_H
#define SMCO_SCHEMA_FILE_H

#include "reports/bytes.h"
#include "reports/schema.h"

#define SCHEMA_MAX_EVENTS 1024 /* of a file */

struct schema_entry { /* private but for event.name, field[].name */
	uint32_t id;
	struct schema_event event;
	struct schema_field *field; /* owned, with the names */
	char *names;
};

/* Zero-initialise, schema_table_free at the end. */
struct schema_table {
	struct schema_entry *entry;
	size_t nr, cap;
};

void schema_table_free(struct schema_table *t);
/* Append all events known here; returns how many. */
uint32_t schema_write(struct bbuf *out);
/* Take in the payload of a schema chunk; of two for an event the later counts.
 * @has_units: as schema_write() writes it; otherwise of format 4.
 * SMCO_FORMAT, SMCO_NOMEM. */
int schema_read(struct schema_table *t, bool has_units, uint32_t nr_items,
		struct cursor *c);
const struct schema_event *schema_of(const struct schema_table *t,
				     uint32_t event);

#endif
