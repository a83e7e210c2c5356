# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev lint: each check is a function lint_NAME that prints its findings and fails with any.

# The longest first, so that all end together.
CHECKS=(tidy staticcheck hardened shellcheck vet dashboards reference reuse vulnerabilities format score_card prose
	reasons notice workflows whitespace spdx gofmt links pages guide shape forbidden sleeps executable circles size)
LINT_PASSED=0
LINT_FAILED=()

c_files() {
	repo_files 'api/*.[ch]' 'dataplane/*.[ch]' 'traffic/*.[ch]' 'test/*.[ch]' 'bench/*.[ch]'
}

go_files() {
	repo_files '*.go'
}

shell_files() {
	local file
	repo_files '*.sh'
	# Scripts without that ending have their interpreter in the first line.
	repo_files | grep -vE '\.[a-z0-9]+$' | while IFS= read -r file; do
		! head -n 1 "$file" | grep -qaE '^#!.*\b(bash|sh)$' || printf '%s\n' "$file"
	done
}

# Runs a program over the files named on standard input; no files: nothing to do.
over_files() {
	xargs --no-run-if-empty -d '\n' "$@"
}

lint_format() {
	local output
	output=$(c_files | over_files -P "$(jobs_count)" -n 50 clang-format --dry-run -Werror 2>&1) && return 0
	sed -E 's/^([^:]*):[0-9].*\[-Wclang-format-violations\]$/\1: clang-format would change it (.\/dev lint --fix)/;
		/^[[:space:]]/d' <<<"$output" | sort -u
	return 1
}

# No blanks at the end of a line, no carriage returns, a newline at the end of the file. Test data may hold anything.
lint_whitespace() {
	local files bad=0
	files=$(repo_files ':!*.patch' ':!*/corpus/*' ':!*/testdata/*' ':!*/dygraphs/*' ':!*.pcap' ':!*.png' \
		':!LICENSE')
	if over_files grep -nIE '[[:blank:]]+$|'$'\r' <<<"$files"; then
		bad=1
	fi
	if ! python3 -c '
import sys
bad = 0
for path in sys.stdin.read().splitlines():
    with open(path, "rb") as f:
        data = f.read()
    if data and data[-1:] != b"\n" and b"\0" not in data:
        bad = 1
        print(path + ": no newline at the end")
sys.exit(bad)' <<<"$files"; then
		bad=1
	fi
	return $bad
}

# The licence line stands in one of the first three lines (a script's #! or "Code generated" may come before it).
lint_spdx() {
	local bad
	bad=$({
		c_files
		go_files
		shell_files
		repo_files '*.py' '*/meson.build' meson.build
	} | sort -u | over_files awk 'FNR == 1 { if (file != "" && !found) print file; file = FILENAME; found = 0 }
		FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { found = 1 }
		FNR == 3 { if (!found) print file; file = ""; nextfile }
		END { if (file != "" && !found) print file }')
	[[ -n $bad ]] || return 0
	printf 'no "SPDX-License-Identifier: Apache-2.0" in the first three lines of:\n%s\n' "$bad"
	return 1
}

# Every file has a licence and an owner, and LICENSES has its text (REUSE 3.3). Debian 12's reuse is too old.
lint_reuse() {
	with_supply -m reuse lint --lines
}

# Python with what scripts/supply.txt lists.
with_supply() {
	ensure_python supply || { printf 'note: no PyPI from here, so this is not looked at\n' && return 0; }
	PYTHONPATH=.tools/supply python3 "$@"
}

# The workflow files run the project's own scripts.
lint_workflows() {
	with_supply scripts/workflows.py .github/workflows/*
}

# NOTICE has the licences of what the programs have of others.
lint_notice() {
	! has_go || scripts/components.py notice
}

# Known faults of what is linked, where their list can be had.
lint_vulnerabilities() {
	local list=${GOVULNDB:-https://vuln.go.dev}
	if ! curl -sfL -m 20 -o /dev/null "$list/index/db.json"; then
		printf 'note: no %s from here, so govulncheck does not look\n' "$list"
		return 0
	fi
	build_tool .tools/bin/govulncheck golang.org/x/vuln/cmd/govulncheck && .tools/bin/govulncheck ./...
}

# No packet may stop the process: code reached by packets and messages has nothing that ends it, and no string function
# without a bound. scripts/forbidden.awk names the one exception. Tests, fuzz targets, models and checkers may;
# static_assert is welcome everywhere.
lint_forbidden() {
	# DPDK's line is 128 octets on arm64: wire/cache_line.h.
	if repo_files 'dataplane/*.[ch]' 'traffic/*.[ch]' | grep -v '/cache_line\.h$' |
		over_files grep -nE '__rte_cache(_min)?_aligned|RTE_CACHE_LINE_SIZE'; then
		echo "use cache_aligned and CACHE_LINE of wire/cache_line.h"
		return 1
	fi
	local words='assert|abort|exit|_exit|rte_panic|rte_exit|RTE_VERIFY|RTE_ASSERT|__builtin_trap'
	words="$words|strcpy|strcat|sprintf|vsprintf|gets|alloca"
	repo_files 'dataplane/lib/*.[ch]' 'dataplane/modules/*.[ch]' 'traffic/*.[ch]' |
		grep -vE '_(test|fuzz|model|bench|check|kit)\.[ch]$' |
		over_files awk -v words="$words" -f scripts/forbidden.awk
}

# Tests wait for events: a sleep stands between two looks at a condition, in a loop with a limit. scripts/sleeps.py
# names the others.
lint_sleeps() {
	repo_files 'test/*.sh' 'test/*.py' 'bench/*.sh' 'bench/*.py' '*_test.go' | scripts/sleeps.py
}

# A test script that is not executable would be passed over.
lint_executable() {
	local file bad=0
	while IFS= read -r file; do
		[[ -x $file ]] && continue
		printf '%s: not executable, so ./dev test would not run it\n' "$file"
		bad=1
	done < <(repo_files 'test/*_test.sh' 'api/*.sh' dev .ci/run)
	return $bad
}

# Whether one of the files named on standard input is newer than the stamp.
newer_than() {
	local file newer=1
	while IFS= read -r file; do
		[[ ! $file -nt $1 ]] || newer=0
	done
	return $newer
}

# Scripts source each other: after a change of one of them, of all.
lint_shellcheck() {
	local passed=build/lint/shellcheck.ok
	shell_files | newer_than "$passed" || return 0
	shell_files | over_files -P "$(jobs_count)" -n 12 shellcheck --external-sources --source-path=SCRIPTDIR \
		--source-path="$ROOT" || return 1
	mkdir -p build/lint
	touch "$passed"
}

lint_gofmt() {
	local bad
	bad=$(go_files | over_files gofmt -l 2>&1) || true
	[[ -z $bad ]] && return 0
	printf '%s: gofmt would change it (./dev lint --fix)\n' "$bad"
	return 1
}

has_go() {
	[[ -n $(repo_files '*.go' ':!scripts/tools/*') ]]
}

lint_vet() {
	! has_go || { go vet ./... && (cd test/gopfcp && go vet ./...); }
}

# Grafana's types are three megabytes of source: in a module of their own no other check looks at them.
lint_dashboards() {
	build_tool .tools/bin/dashboards ./dashboards && .tools/bin/dashboards deploy/grafana/*.json
}

# It looks at all that is imported, too. A third of its time goes to the garbage collector unless that waits (1.1 GB).
lint_staticcheck() {
	! has_go || GOGC=800 "$(staticcheck_path)" ./...
}

# docs/reference/structure.md draws the includes: no circle, no arrow upward, no protocol in core, nothing of the
# laboratory in the product.
lint_circles() {
	! has_go || scripts/circles.py
}

# clang-tidy over changed files; its flags come from the build folder.
lint_tidy() {
	build_targets build.ninja || return 1
	scripts/tidy.py "$(jobs_count)"
}

# docs/proof.md: every row of bad input is there once, ids in comments are rows, named tests exist.
lint_score_card() {
	repo_files | scripts/score_card.py
}

# Every drop reason has a test that names it, and an advice; docs/reference/drops.md has them.
lint_reasons() {
	scripts/reasons.py
}

# The tests that compare pages of docs/reference, docs/config.schema.json and docs/openapi.json with the code.
reference_tests() {
	local packages
	mapfile -t packages < <(repo_files '*_test.go' | over_files grep -l '^func TestReference' |
		over_files -n 1 dirname | sort -u)
	go test -vet=off -run '^TestReference' "${packages[@]/#/./}" "$@"
}

lint_reference() {
	! has_go || reference_tests
}

# Plain words: neither documents nor comments get more to mend than they have.
lint_prose() {
	repo_files | scripts/prose.py
}

# Targets of links in Markdown files, and files named there and in comments, exist.
lint_links() {
	repo_files | scripts/links.py
}

# Commands that pages type exist, a test types them, and the site's navigation has each page.
lint_pages() {
	repo_files | scripts/pages.py
}

# The commands and quotes of docs/development.md are valid.
lint_guide() {
	repo_files | scripts/guide.py
}

# Functions are short; lines that are too wide do not become more.
lint_shape() {
	repo_files '*.c' '*.h' '*.go' '*.py' '*.sh' | grep -vE '(_gen|\.pb)\.go$' | scripts/shape.py
}

# The finished programs are what a distribution would accept: as they would be built now.
lint_hardened() {
	local programs=(dataplane/isthmus-dp traffic/isthmus-traffic-engine traffic/fault-relay)
	build_targets "${programs[@]}" && build_go || return 1
	scripts/hardened.py "${programs[@]/#/build/}" build/isthmus build/isthmus-lab build/isthmus-traffic
}

# Only a report: long files are worth a look, not a failure.
lint_size() {
	{
		c_files
		go_files
	} | grep -vE '_gen\.go$' | over_files wc -l |
		awk '$2 != "total" && $1 > 500 { printf "note: %s has %d lines; 500 is plenty for one file\n", $2, $1 }'
}

# Runs one check and prints its result, and what it says when that is good; leaves DIR/CHECK.ok then, else what it says
# in DIR/CHECK.
# usage: lint_one DIR CHECK
lint_one() {
	local start output result="${RED}failed$PLAIN"
	start=$(now_ms)
	if output=$("lint_$2" 2>&1); then
		result="${GREEN}ok$PLAIN"
		: >"$1/$2.ok"
	else
		printf '%s\n' "$output" >"$1/$2"
		output=''
	fi
	printf '%-12s %s  %d ms\n%s' "$2" "$result" $(($(now_ms) - start)) "${output:+$output$'\n'}"
}

# Runs the checks whose names contain one of the words (all without words), two at a time: most have single-threaded
# parts. Output of failed ones comes last.
lint_all() {
	local check dir running=0
	dir=$(mktemp -d)
	LINT_PASSED=0
	LINT_FAILED=()
	for check in "${CHECKS[@]}"; do
		wanted "$check" "$@" || continue
		((++running <= 2)) || wait -n
		lint_one "$dir" "$check" &
	done
	wait
	for check in "${CHECKS[@]}"; do
		wanted "$check" "$@" || continue
		if [[ -e $dir/$check.ok ]]; then
			LINT_PASSED=$((LINT_PASSED + 1))
		else
			LINT_FAILED+=("$check")
			printf -- '--- %s\n' "$check"
			cat "$dir/$check"
		fi
	done
	rm -r "$dir"
	((${#LINT_FAILED[@]} == 0))
}

# Applies the formatters, and makes pages from the code again.
lint_fix() {
	c_files | over_files clang-format -i
	go_files | over_files gofmt -w
	scripts/reasons.py --fix
	reference_tests -update >/dev/null
	scripts/components.py notice --fix
}

verb_lint() {
	ensure_setup
	if [[ ${1:-} == --fix ]]; then
		lint_fix
		shift
	fi
	if lint_all "$@"; then
		say "lint: $LINT_PASSED checks passed"
	else
		die "lint: failed: ${LINT_FAILED[*]}"
	fi
}
