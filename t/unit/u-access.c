/* The list of mechanisms: complete, in order, each refusal with its reason. */
#include "supervisor/probe/access.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

/* As somebody who has no privilege at all. */
static int as_nobody(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		struct smco_err err = {0};
		if (setgid(65534) || setuid(65534))
			_exit(77);
		int code = access_bits.probe(&err);
		if (code == SMCO_PERM && strstr(err.msg, "CAP_BPF") &&
		    strstr(err.msg, "uid is 65534"))
			_exit(0);
		printf("# %d %s\n", code, err.msg);
		fflush(stdout);
		_exit(1);
	}
	int status;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	struct access_status all[ACCESS_NR];
	access_probe_all(all);
	check_str(all[0].ops->name, "bits");
	for (int i = 0; i < ACCESS_NR; i++) {
		for (int k = 0; k < i; k++)
			check(all[i].ops != all[k].ops);
		printf("# %s: %s\n", all[i].ops->name,
		       all[i].is_untold ? "open() tells"
		       : all[i].code	? all[i].err.msg
					: "works here");
		check((all[i].code == 0) == (all[i].err.msg[0] == '\0'));
	}
	if (all[0].code) {
		tap_skip("accessed bits do not work here at all");
		return tap_done();
	}
	int r = as_nobody();
	if (r == 77)
		tap_skip("needs root to become nobody");
	else
		check_msg(r == 0, "without privilege the message says what "
				  "is missing");
	return tap_done();
}
