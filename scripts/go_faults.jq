# SPDX-License-Identifier: Apache-2.0
# Failures in the events of `go test -json` (jq -rs): each failed test with its output, then packages that failed
# without one: they do not build, or end early.

# The first lines of a text, without lines about what runs.
def lines($most):
	split("\n") | map(select(length > 0 and (test("^ *=== (RUN|PAUSE|CONT|NAME)") | not)))
	| if length > $most then .[:$most] + ["    … \(length - $most) more lines"] else . end;

def output: map(.Output // "") | join("");

. as $events
| INDEX(.[] | select(.Test and (.Action | IN("pass", "skip"))); "\(.Package) \(.Test)") as $passed
# A package that hangs is ended without a word about the test that was running.
| ([.[] | select(.Test and (.Action | IN("run", "fail"))) | {Package, Test}] | unique
	| map(select($passed["\(.Package) \(.Test)"] | not))) as $failed
| ($failed | map(.Package)) as $told
| ([ $failed[] | . as $f
	| {name: "\(.Package) \(.Test)",
	   text: [$events[] | select(.Action == "output" and .Package == $f.Package and .Test == $f.Test)] | output | lines(20),
	   above: any($failed[]; .Package == $f.Package and (.Test | startswith($f.Test + "/")))}
	# A test that failed because a part of it did says nothing new.
	| select((.above and all(.text[]; startswith("--- "))) | not) ]
  + [ $events[] | select(.Action == "fail" and (.Test | not)) | . as $f
	| select($told | index([$f.Package]) | not)
	| {name: .Package,
	   text: [$events[] | select((.Action == "build-output" and .ImportPath == $f.FailedBuild)
		or (.Action == "output" and .Package == $f.Package and (.Test | not)))] | output | lines(20)} ])[]
| "FAILED \(.name)", .text[]
