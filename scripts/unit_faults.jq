# SPDX-License-Identifier: Apache-2.0
# What failed in Meson's testlog.json (jq -rs): each failed program with what it wrote, but for the tests in it that passed.

def lines($most):
	split("\n") | map(select(length > 0 and (test("^\\[( RUN      |       OK |==========|  PASSED  )\\]") | not)))
	| if length > $most then .[:$most] + ["    … \(length - $most) more lines"] else . end;

.[] | select(.result | IN("OK", "EXPECTEDFAIL", "SKIP") | not)
| "FAILED \(.name): \(.result), exit status \(.returncode)", ("\(.stdout // "")\n\(.stderr // "")" | lines(30))[]
