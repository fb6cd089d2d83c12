/* own-stack.h - room for our own calls, whatever limit the command is to have.
 */
#ifndef SMCO_OWN_STACK_H
#define SMCO_OWN_STACK_H

/*
 * Calls @fn and returns what it does. Below a limit of 8 MiB (ulimit -s), which
 * is inherited by the command and stays as it is, it has a stack of that size
 * made for it, as have threads that are created from then on: libdw and others
 * need more than the limit may leave. Where there is no memory for that it runs
 * with what there is. Once, before there are other threads.
 */
int own_stack_call(int (*fn)(int argc, char **argv), int argc, char **argv);

#endif
