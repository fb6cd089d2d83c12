/*
 * disk.h - the structures of a trace file as they lie on disk: little-endian,
 * no padding, reserved fields zero. FORMAT.md is normative; a change here
 * changes the version there and in TRACE_VERSION in the same commit.
 */
#ifndef SMCO_DISK_H
#define SMCO_DISK_H

#include <assert.h>

#include "reports/base.h"

/* Not text, no newline translation survives it, 8 bytes. */
#define TRACE_MAGIC	      "\x89SMCO\r\n\x1a"
#define TRACE_VERSION	      7
#define TRACE_OLDEST_READABLE 7 /* by which readers this writer's files are */
#define TRACE_OLDEST_KNOWN    3 /* of the files that this reader reads */

enum trace_features { /* a reader must refuse a file with bits it lacks */
		      TRACE_FEATURE_ZSTD = 1 << 0,
};
#define TRACE_FEATURES_KNOWN TRACE_FEATURE_ZSTD

enum trace_clock { TRACE_CLOCK_MONOTONIC = 1 };

struct disk_header {
	uint8_t magic[8];
	uint16_t version;
	uint16_t oldest_readable;
	uint32_t header_size; /* where the first chunk starts */
	uint64_t features;
	uint64_t start_ns;	/* of the clock below at session time 0 */
	uint64_t start_real_ns; /* CLOCK_REALTIME at session time 0 */
	uint32_t clock;		/* enum trace_clock */
	uint32_t arch;		/* ELF e_machine of the monitored program */
	uint32_t schema_crc;	/* CRC-32 of the schema chunk's raw payload */
	uint8_t reserved[8];
	uint32_t crc; /* CRC-32 of the bytes before */
};
static_assert(sizeof(struct disk_header) == 64, "see FORMAT.md");

#define CHUNK_MARKER "SM"	/* how chunks begin: see chunk-head.h */
#define CHUNK_MAGIC  0x4b434d53 /* "SMCK": those of formats 3 and 4 */

enum chunk_type {
	CHUNK_META = 1,
	CHUNK_STRINGS = 2,
	CHUNK_FRAMES = 3,
	CHUNK_STACKS = 4,
	CHUNK_RECORDS_1 = 5, /* of formats 1 and 2 */
	CHUNK_END = 6,
	CHUNK_RECORDS = 7,
	CHUNK_SCHEMA_4 = 8, /* of formats 3 and 4: without units */
	CHUNK_INDEX = 9,
	CHUNK_SCHEMA = 10,
	CHUNK_NAMES = 11,
};

enum chunk_flags {
	CHUNK_ZSTD = 1 << 0,	 /* payload is one zstd frame */
	CHUNK_MODELLED = 1 << 1, /* items are coded by those before, see back */
	CHUNK_DICTIONARY = 1 << 2, /* the frame needs the one of dictionary.h */
	CHUNK_MODELLED_7 = 1
			   << 3, /* with CHUNK_MODELLED: as from format 7 on */
};
#define CHUNK_FLAGS_KNOWN                                                      \
	(CHUNK_ZSTD | CHUNK_MODELLED | CHUNK_DICTIONARY | CHUNK_MODELLED_7)

struct disk_chunk { /* formats 3 and 4; fields as of struct chunk_head */
	uint32_t magic;
	uint8_t type;
	uint8_t flags;
	uint16_t back;
	uint32_t seq;
	uint32_t nr_items;
	uint32_t stored_size;
	uint32_t raw_size;
	uint32_t payload_crc;
	uint32_t header_crc; /* CRC-32 of the bytes before */
};
static_assert(sizeof(struct disk_chunk) == 32, "see FORMAT.md");

#define CHUNK_MAX	 (4u << 20) /* bytes, stored or raw */
#define STRING_MAX	 (64u << 10)
#define STACK_MAX_FRAMES 1024
#define NAMES_MAX_FRAMES 64 /* that one frame turns out to be */

#endif
