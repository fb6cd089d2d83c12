/* command.h - which file a command is: as execvp and the kernel look for it. */
#ifndef SMCO_COMMAND_H
#define SMCO_COMMAND_H

#include "reports/base.h"

/*
 * The file that execvp(@name) would run first, by PATH if the name has no
 * slash; NULL if there is none that may be executed. Caller frees.
 */
char *command_find(const char *name);
/*
 * The program that runs when the file @path is executed: of a script ("#!")
 * its interpreter, links followed; NULL if there is no such file. Caller frees.
 */
char *command_program(const char *path);
/*
 * Of @command that only begins another one (env, taskset, timeout ...): where
 * in it the name of that is. NULL if it is none of these, or nothing there may
 * be executed.
 */
char **command_behind(char **command);

#endif
