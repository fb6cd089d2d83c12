/* The pages of reports/html/, see html-image.h, as the tools carry them. */
	.section .rodata
	.globl	html_page_start, html_page_runs, html_page_data, html_page_end
	.globl	html_diff_start, html_diff_data, html_diff_end
html_page_start:
	.incbin PAGE_HEAD
html_page_runs:
	.incbin PAGE_BODY
html_page_data:
	.incbin PAGE_TAIL
html_page_end:
html_diff_start:
	.incbin DIFF_HEAD
html_diff_data:
	.incbin DIFF_TAIL
html_diff_end:
	.section .note.GNU-stack, "", @progbits
