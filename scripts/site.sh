# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev site: the manual as a site in build/site, by mkdocs (Debian 12's is too old: the one of scripts/site.txt is put
# into .tools/site). A dead link or anchor, or a page that is missing in the navigation, fails.

verb_site() {
	local elsewhere
	ensure_python site || die "no mkdocs: PyPI is needed (.tools/site.log)"
	{ lint_pages && lint_links; } || die "the site is not built"
	repo_files | scripts/site.py build/site-pages
	# The theme's makers have a word about their next product.
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=.tools/site python3 -m mkdocs --quiet build --strict "$@"
	elsewhere=$(grep -rnoE '<(script|img|iframe|source|link)[^>]* (src|href)="?(https?:)?//[^ >]*' build/site \
		--include='*.html' || true)
	[[ -z $elsewhere ]] || die "the site loads from elsewhere: $elsewhere"
	say "build/site: $(find build/site -name '*.html' | wc -l) pages; with search:" \
		"python3 -m http.server -d build/site"
}
