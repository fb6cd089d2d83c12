/*
 * When huge pages were last looked at: each by itself, and forgotten with the
 * memory.
 */
#include "supervisor/probe/hugeseen.h"
#include "t/unit/tap.h"

#define HUGE_PAGE (2UL << 20)

int main(void)
{
	struct hugeseen h = {0};
	check_int(hugeseen_last(&h, HUGE_PAGE), 0);
	hugeseen_drop(&h, 0, UINT64_MAX);
	for (uint64_t i = 0; i < 1000; i++)
		hugeseen_note(&h, i * HUGE_PAGE, i + 1);
	int wrong = 0;
	for (uint64_t i = 0; i < 1000; i++)
		wrong += hugeseen_last(&h, i * HUGE_PAGE) != i + 1;
	check_int(wrong, 0);
	check_int(hugeseen_last(&h, 1000 * HUGE_PAGE), 0);
	hugeseen_drop(&h, 10 * HUGE_PAGE - 1, 20 * HUGE_PAGE + 1);
	check_int(hugeseen_last(&h, 9 * HUGE_PAGE), 10);
	check_int(hugeseen_last(&h, 10 * HUGE_PAGE), 0);
	check_int(hugeseen_last(&h, 19 * HUGE_PAGE), 0);
	check_int(hugeseen_last(&h, 20 * HUGE_PAGE), 21);
	hugeseen_drop(&h, 500 * HUGE_PAGE, UINT64_MAX);
	check_int(hugeseen_last(&h, 499 * HUGE_PAGE), 500);
	check_int(hugeseen_last(&h, 999 * HUGE_PAGE), 0);
	hugeseen_note(&h, 999 * HUGE_PAGE, 77);
	check_int(hugeseen_last(&h, 999 * HUGE_PAGE), 77);
	hugeseen_deinit(&h);
	return tap_done();
}
