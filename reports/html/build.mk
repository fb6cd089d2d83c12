# ------------------------------------------------------------------- pages --
# Each page is one file that needs no other: assemble.pl puts style sheets and
# scripts into it, in this order, and cuts it where the data goes.
HTML := $(O)/reports/html
PAGE_CSS := reports/html/chrome.css reports/html/page.css
PAGE_JS := $(addprefix reports/html/,units.js dom.js run.js time.js series.js \
	canvas.js tip.js lane.js strips.js phases.js ruler.js overview.js \
	select.js table.js flame.js interval.js main.js)
DIFF_CSS := reports/html/chrome.css reports/html/diff.css

$(HTML)/page.head: reports/html/page.html $(PAGE_CSS) $(PAGE_JS) reports/html/assemble.pl
	@mkdir -p $(@D)
	$(call say,PAGE,$@)perl reports/html/assemble.pl $(HTML)/page $< $(PAGE_CSS) $(PAGE_JS)
$(HTML)/diff.head: reports/html/diff.html $(DIFF_CSS) reports/html/assemble.pl
	@mkdir -p $(@D)
	$(call say,PAGE,$@)perl reports/html/assemble.pl $(HTML)/diff $< $(DIFF_CSS)
$(HTML)/page.body $(HTML)/page.tail: $(HTML)/page.head
$(HTML)/diff.tail: $(HTML)/diff.head

$(O)/reports/html-image.o: $(HTML)/page.head $(HTML)/page.body \
	$(HTML)/page.tail $(HTML)/diff.head $(HTML)/diff.tail
$(O)/reports/html-image.o: CPPFLAGS += \
	-DPAGE_HEAD='"$(HTML)/page.head"' -DPAGE_BODY='"$(HTML)/page.body"' \
	-DPAGE_TAIL='"$(HTML)/page.tail"' -DDIFF_HEAD='"$(HTML)/diff.head"' \
	-DDIFF_TAIL='"$(HTML)/diff.tail"'
