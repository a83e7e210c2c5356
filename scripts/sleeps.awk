# SPDX-License-Identifier: Apache-2.0
# Finds sleeps in shell, Python and Go tests outside functions whose name begins with wait (or _wait). Fails when there
# are any. `sleep infinity` holds a namespace open and is no waiting.
FNR == 1 { helper = 0 }
/^[ \t]*(function )?[A-Za-z_][A-Za-z0-9_]*[ \t]*\(\)/ || /^[ \t]*def / || /^func / {
	name = $0
	sub(/^[ \t]*(function |def |func (\([^)]*\) )?)?_?/, "", name)
	helper = name ~ /^wait/
}
/^}/ { helper = 0 }
/^[ \t]*(#|\/\/)/ { next }
/sleep infinity/ { next }
/(^|[ \t;&|(.])[sS]leep([ \t(]|$)/ && !helper {
	printf "%s:%d: sleep outside a wait helper: %s\n", FILENAME, FNR, $0
	bad = 1
}
END { exit bad }
