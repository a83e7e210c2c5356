# SPDX-License-Identifier: Apache-2.0
# Finds calls of the functions in `words` (joined by |) in C files, outside comments and strings. Fails when there are any.
# Allowed: rte_panic in a function with a comment above or in it that says "before main()". Constructors that register
# something twice end so: no packet and no message is there yet.
FNR == 1 { inside = early = 0 }
{
	if (/^}/)
		early = 0
	if (/(\/\/|\/\*).*before main\(\)/)
		early = 1
	text = $0
	if (inside) {
		if (!sub(/^.*\*\//, "", text))
			next
		inside = 0
	}
	gsub(/"([^"\\]|\\.)*"/, "\"\"", text)
	gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", text)
	sub(/\/\/.*/, "", text)
	if (sub(/\/\*.*/, "", text))
		inside = 1
	if (match(text, "(^|[^A-Za-z0-9_])(" words ")[ \t]*\\(")) {
		if (early && substr(text, RSTART, RLENGTH) ~ /rte_panic/)
			next
		printf "%s:%d: not where packets can reach: %s\n", FILENAME, FNR, $0
		bad = 1
	}
}
END { exit bad }
