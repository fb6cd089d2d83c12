/*
 * smco-phase.h - tell smco-trace what a program is doing. One file, no library:
 *
 *	#include <smco-phase.h>
 *
 *	SMCO_PHASE_BEGIN(myapp, load);
 *	...
 *	SMCO_PHASE_END(myapp, load);
 *
 *	for (...)
 *		SMCO_PHASE_POINT(myapp, iteration);
 *
 * and smco-trace --phase sdt:myapp:load --phase sdt:myapp:iteration. A point's
 * phase lasts until the thread's next one. A mark costs one nop of five bytes
 * when nobody listens. Phases may nest.
 *
 * Each is a SystemTap probe (a note in .note.stapsdt) without arguments, so
 * that other tools find them, too: load__begin, load__end, iteration.
 * x86-64, C and C++, gcc and clang. Anybody may use and copy this file.
 */
#ifndef SMCO_PHASE_H
#define SMCO_PHASE_H

#define SMCO_PHASE_BEGIN(provider, name)                                       \
	SMCO_PHASE_MARK(#provider, #name "__begin")
#define SMCO_PHASE_END(provider, name)	 SMCO_PHASE_MARK(#provider, #name "__end")
#define SMCO_PHASE_POINT(provider, name) SMCO_PHASE_MARK(#provider, #name)

#define SMCO_PHASE_MARK(provider, name)                                        \
	__asm__ volatile(SMCO_PHASE_ASM(provider, name, "0"))
/* For inside of assembly: texts, and the semaphore's symbol or "0". */
#define SMCO_PHASE_ASM(provider, name, semaphore)                              \
	"990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                            \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                          \
	".balign 4\n"                                                          \
	".4byte 992f-991f, 994f-993f, 3\n"                                     \
	"991: .asciz \"stapsdt\"\n"                                            \
	"992: .balign 4\n"                                                     \
	"993: .8byte 990b\n"                                                   \
	".8byte _.stapsdt.base\n"                                              \
	".8byte " semaphore "\n"                                               \
	".asciz \"" provider "\"\n"                                            \
	".asciz \"" name "\"\n"                                                \
	".asciz \"\"\n"                                                        \
	"994: .balign 4\n"                                                     \
	".popsection\n"                                                        \
	".ifndef _.stapsdt.base\n"                                             \
	".pushsection .stapsdt.base,\"aG\",\"progbits\","                      \
	".stapsdt.base,comdat\n"                                               \
	".weak _.stapsdt.base\n"                                               \
	".hidden _.stapsdt.base\n"                                             \
	"_.stapsdt.base: .space 1\n"                                           \
	".size _.stapsdt.base, 1\n"                                            \
	".popsection\n"                                                        \
	".endif\n"

#endif
