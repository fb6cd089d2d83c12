#include "reports/markup.h"

#include "reports/line.h"

void markup_text(FILE *out, const char *s)
{
	bool ok;
	for (size_t n; (n = line_char(s, &ok)) != 0; s += n) {
		if (!ok)
			fputc('?', out);
		else if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '>')
			fputs("&gt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '"')
			fputs("&quot;", out);
		else if (*s == '\'')
			fputs("&#39;", out);
		else
			fwrite(s, 1, n, out);
	}
}
