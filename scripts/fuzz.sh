# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# ./dev fuzz. (./dev test replays the corpora in build-asan.)
#
# A C target is an executable of build-fuzz/ made from a source X_fuzz.c; its corpus is the folder corpus/X,
# corpus/X_fuzz or corpus/TARGET, anywhere in the repository. A Go target is a function FuzzX(*testing.F).

# Prints "EXECUTABLE SOURCE" of each C target that was built.
fuzz_targets() {
	meson introspect --targets build-fuzz | jq -r '.[] | select(.type == "executable")
		| .filename[0] as $program
		| first(.target_sources[].sources[]? | select(endswith("_fuzz.c"))) as $source
		| "\($program) \($source)"' | while read -r program source; do
		printf '%s %s\n' "${program#"$ROOT/"}" "${source#"$ROOT/"}"
	done | sort
}

# Prints the corpus folder of a target, nothing when it has none.
# usage: fuzz_corpus EXECUTABLE SOURCE
fuzz_corpus() {
	local target source
	target=$(basename "$1")
	source=$(basename "$2" _fuzz.c)
	find . -path './.*' -prune -o -path './build*' -prune -o -type d \( -path "*/corpus/$source" -o \
		-path "*/corpus/${source}_fuzz" -o -path "*/corpus/$target" \) -print | sort | sed -n '1s,^\./,,p'
}

# The environment of everything that runs with sanitizers: stop at the first finding, with a stack.
# DPDK keeps memory until the process ends, which is no leak of ours. Frames that outlive their function are clang's
# alone: gcc 12 gives a variable that wants 64 bytes a place at 32 in them. usage: sanitizer_env gcc|clang
sanitizer_env() {
	local outlive=0
	[[ $1 == gcc ]] || outlive=1
	export ASAN_OPTIONS="detect_leaks=${ISTHMUS_LEAKS:-0}:abort_on_error=0:detect_stack_use_after_return=$outlive"
	export UBSAN_OPTIONS="print_stacktrace=1"
}

# Runs one C target for SECONDS. New inputs stay in build-fuzz/learned/NAME for the next run. An input that breaks the
# target goes to the corpus, so that ./dev test replays it.
# usage: fuzz_one EXECUTABLE SOURCE SECONDS
fuzz_one() {
	local target=$1 source=$2 seconds=$3 name corpus finds learned find bad=0
	name=$(basename "$target")
	corpus=$(fuzz_corpus "$target" "$source")
	[[ -n $corpus ]] || corpus=$(dirname "$source")/corpus/$(basename "$source" .c)
	finds=build-fuzz/finds/$name
	learned=build-fuzz/learned/$name
	mkdir -p "$corpus" "$learned"
	rm -rf "$finds"
	mkdir -p "$finds"
	say "fuzz $name: $seconds s, corpus $corpus"
	"$target" "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
		"-artifact_prefix=$finds/" "$learned" "$corpus" >"build-fuzz/$name.log" 2>&1 </dev/null || bad=1
	grep -E '^(stat::number_of_executed_units|stat::average_exec_per_sec|SUMMARY)' "build-fuzz/$name.log" || true
	for find in "$finds"/*; do
		[[ -f $find ]] || continue
		cp "$find" "$corpus/"
		warn "$name: kept $corpus/$(basename "$find"); to see it: $target $corpus/$(basename "$find")"
	done
	rmdir -p --ignore-fail-on-non-empty "$corpus"
	((bad == 0)) || warn "$name failed: build-fuzz/$name.log"
	return $bad
}

# Prints "PACKAGE FUNCTION" of each Go fuzz target.
go_fuzz_targets() {
	local file function
	repo_files '*_test.go' | while IFS= read -r file; do
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while IFS= read -r function; do
			printf './%s %s\n' "$(dirname "$file")" "$function"
		done
	done
}

verb_fuzz() {
	local seconds=30 target source package function bad=0 ran=0
	if [[ ${1:-} =~ ^[0-9]+$ ]]; then
		seconds=$1
		shift
	fi
	ensure_setup
	say "build the fuzz targets"
	build_fuzz
	sanitizer_env clang
	while read -r target source; do
		wanted "$(basename "$target")" "$@" || continue
		ran=$((ran + 1))
		fuzz_one "$target" "$source" "$seconds" || bad=$((bad + 1))
	done < <(fuzz_targets)
	while read -r package function; do
		wanted "$function" "$@" || continue
		ran=$((ran + 1))
		say "fuzz $package $function: $seconds s"
		# Go itself keeps a failing input in the package's testdata/fuzz/, where go test replays it.
		go test -run '^$' -fuzz "^$function\$" -fuzztime "${seconds}s" "$package" </dev/null || bad=$((bad + 1))
	done < <(go_fuzz_targets)
	say "fuzz: $ran targets, $bad with findings"
	((bad == 0))
}
