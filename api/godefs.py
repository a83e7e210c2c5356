#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Reads isthmus_api.h and writes into a folder: `types`, Go types (through `go tool cgo -godefs`); `layout`, the layout
# of every message (through the C compiler); `digests`, the layouts' digests (a table). Reads the tester's job.h and
# writes `job`, its Go types. Called by check.sh. The headers are its only list of names.
import functools
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER, PACKAGE, PREFIX = os.path.join(HERE, "isthmus_api.h"), "api", "api_"
INITIALISMS = set(
    "acl api be cbs cir cpu dscp esp far fteid erspan gre gtpu hqos icmp id ip ip4 ip6 mac mru mss mtu nat pbs tcp pdr "
    "pid pir qer qfi "
    "lcp rpf rss rte sdf seid srtcm teid tos tpid trtcm tsc ttl ue ul dl pdu udp cp urr vlan vrf spi sgi lan url "
    "mbr".split()
)
SPECIAL = {
    "qinq": "QinQ",
    "pppoe": "PPPoE",
    "gtsm": "GTSM",
    "dnn": "DNN",
    "nptv6": "NPTv6",
    "API_NAME": "NameSize",
    "API_TEXT": "TextSize",
    "API_SYNTH_TEMPLATE": "SynthTemplateSize",
}


def word(w):
    if w in SPECIAL:
        return SPECIAL[w]
    if w in INITIALISMS:
        return w.upper()
    return w[:-1].upper() + "s" if w.endswith("s") and w[:-1] in INITIALISMS else w[:1].upper() + w[1:]


def camel(name):
    return "".join(word(w) for w in name.lower().split("_") if w)


@functools.cache
def parse():
    """Returns structs {name: {field: type}}, enums {name: [constant]} and the numeric defines, in the header's
    order."""
    with open(HEADER, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    defines = re.findall(rf"^#define ({PREFIX.upper()}\w+)[ \t]+\S", text, flags=re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    structs, enums = {}, {}
    for kind, name, body in re.findall(r"^(struct|enum)\s+(\w+)\s*\{(.*?)\};", text, flags=re.M | re.S):
        if kind == "enum":
            enums[name] = [c.split("=")[0].strip() for c in body.split(",") if c.strip()]
            continue
        fields = {}
        for declaration in filter(None, (d.strip() for d in body.split(";"))):
            rest = re.sub(r"^(struct|enum)\s+", "", declaration)
            of, rest = rest.split(None, 1)
            fields.update((re.match(r"\w+", d.strip()).group(0), of) for d in rest.split(","))
        structs[name] = fields
    return structs, enums, defines


def parts(structs, enums):
    """Returns {struct: its constant}: API_PART_FAR_MORE is of struct api_far_more."""
    of = {"api_" + c[len("API_PART_") :].lower(): c for c in enums["api_part"]}
    for name in of:
        if name not in structs:
            sys.exit(f"isthmus_api.h: {of[name]} has no struct {name}")
    return of


def growing(structs, enums):
    """The parts that may grow at their end: those that do not stand inside another struct."""
    nested = {t for fields in structs.values() for t in fields.values()}
    return [s for s in parts(structs, enums) if s not in nested]


def digests():
    """Of each part, for each of its fields, the bytes up to its end and the digest
    until there."""
    structs, enums, _ = parse()
    place = {}
    for line in layout().splitlines():
        words = line.split()
        if words[0] == "field":
            place[words[1]] = (int(words[2]), int(words[3]))

    def steps(struct):
        digest, out = 0x811C9DC5, []
        for field, of in structs[struct].items():
            at, length = place[f"{struct}.{field}"]
            inner = steps(of)[-1][1] if of in structs else 0
            for byte in f"{field} {of} {inner} {at} {length}\n".encode():
                digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
            out.append((at + length, digest))
        return out

    return [(struct, constant, steps(struct)) for struct, constant in parts(structs, enums).items()]


def digest_table():
    """The table as both languages read it: layout.h includes it, layout.go embeds it."""
    mark = "// Made by api/check.sh --write from isthmus_api.h. Do not edit."
    lines = ["// SPDX-License-Identifier: Apache-2.0", mark]
    numbers = dict(line.split()[2:] for line in layout().splitlines() if line.startswith("enum api_part "))
    for struct, constant, steps in digests():
        lines.append(f"PART({struct}, {numbers[constant]},")
        for at in range(0, len(steps), 5):
            lines.append("\t" + " ".join(f"STEP({end}, 0x{digest:08x})" for end, digest in steps[at : at + 5]))
        lines[-1] += ")"
    return "\n".join(lines + [""])


def part_numbers():
    """What Go adds to the types: the number of each part."""
    structs, enums, _ = parse()
    return "".join(
        f"func (*{camel(struct[4:])}) PartNumber() uint16 {{ return Part{camel(constant[len('API_PART_'):])} }}\n"
        for struct, constant in parts(structs, enums).items()
    )


def constants(enums, defines):
    """Yields (Go name, C name): API_ENGINE of enum api_kind is KindEngine, API_PDR_QFI is PDRQFI."""
    for enum, names in enums.items():
        words = enum.split("_")[1:]
        for name in names:
            rest = name.lower().split("_")[1:]
            while len(rest) > 1 and any(w.startswith(rest[0]) for w in words):
                rest.pop(0)
            yield camel("_".join(words)) + camel("_".join(rest)), name
    for name in defines:
        yield SPECIAL.get(name) or camel(name[len(PREFIX) :]), name


def go_name(struct):
    return camel(struct.removeprefix(PREFIX))


def go_types():
    structs, enums, defines = parse()
    header = os.path.basename(HEADER)
    lines = [f'package {PACKAGE}\n\n// #include "{header}"\nimport "C"\n\nconst (']
    lines += [f"\t{go} = C.{c}" for go, c in constants(enums, defines)]
    lines += [f"\tSizeof{go_name(s)} = C.sizeof_struct_{s}" for s in structs]
    lines += [")\n"]
    lines += [f"type {go_name(s)} C.struct_{s}\n" for s in structs]
    with tempfile.TemporaryDirectory() as tmp:
        source = os.path.join(tmp, "godefs.go")
        with open(source, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        out = subprocess.run(
            ["go", "tool", "cgo", "-godefs", "-objdir", tmp, "--", "-I", os.path.dirname(HEADER), source],
            check=True, stdout=subprocess.PIPE, text=True, cwd=HERE,
        ).stdout
    out = out[out.index(f"package {PACKAGE}") :]
    out = re.sub(r"\bint8\b", "byte", re.sub(r"\buint8\b", "byte", out))  # char arrays are bytes, not numbers
    out = re.sub(r"^type (\w+) struct \{\n(.*?)^\}", lambda m: rename(m, structs), out, flags=re.M | re.S)
    licence = "// SPDX-License-Identifier: Apache-2.0"
    mark = f"// Code generated by api/check.sh --write from {header}. DO NOT EDIT."
    out = f"{licence}\n\n{mark}\n\n{out}\n{part_numbers() if PACKAGE == 'api' else ''}"
    return subprocess.run(["gofmt"], input=out, check=True, stdout=subprocess.PIPE, text=True).stdout


def rename(match, structs):
    """Gives each field the Go form of its C name (cgo strips what it takes for a common prefix)."""
    name, lines = match.group(1), match.group(2).splitlines()
    fields = next(f for s, f in structs.items() if go_name(s) == name)
    if len(lines) != len(fields):
        sys.exit(f"{HEADER}: {len(fields)} fields of Go type {name} were found, cgo has {len(lines)}")
    lines = [f"\t{camel(f)} {line.split(None, 1)[1]}" for f, line in zip(fields, lines)]
    return f"type {name} struct {{\n" + "\n".join(lines) + "\n}"


@functools.cache
def layout():
    structs, enums, defines = parse()
    lines = ["#include <stddef.h>", "#include <stdio.h>", f'#include "{HEADER}"', "int main(void)", "{"]
    if "API_VERSION" in defines:
        lines.append('\tprintf("version %u\\n", API_VERSION);')
    for enum, names in enums.items():
        lines += [f'\tprintf("enum {enum} {n} %d\\n", {n});' for n in names if not n.endswith("_COUNT")]
    for d in defines:
        if d != "API_VERSION" and not d.startswith("API_MAX_"):
            lines.append(f'\tprintf("define {d} %u\\n", (unsigned){d});')
    for s, fields in structs.items():
        lines.append(f'\tprintf("struct {s} %zu\\n", sizeof(struct {s}));')
        for f in fields:
            at = f"offsetof(struct {s}, {f}), sizeof(((struct {s} *)0)->{f})"
            lines.append(f'\tprintf("field {s}.{f} %zu %zu\\n", {at});')
    lines += ["\treturn 0;", "}", ""]
    with tempfile.TemporaryDirectory() as tmp:
        source, program = os.path.join(tmp, "layout.c"), os.path.join(tmp, "layout")
        with open(source, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        subprocess.run([os.environ.get("CC", "cc"), "-o", program, source], check=True)
        out = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    refuse_padding(out)
    return out


def locked():
    """What a released version keeps: all but the sizes of parts that may grow at their end, whose fields are locked
    one by one."""
    structs, enums, _ = parse()
    free = [f"struct {s} " for s in growing(structs, enums)]
    return "".join(line for line in layout().splitlines(True) if not line.startswith(tuple(free)))


def refuse_padding(out):
    """A digest covers every byte, so there may be no byte without a name."""
    size, used = {}, {}
    for line in out.splitlines():
        words = line.split()
        if words[0] == "struct":
            size[words[1]] = int(words[2])
        elif words[0] == "field":
            name = words[1].split(".")[0]
            used[name] = used.get(name, 0) + int(words[3])
    for name in size:
        if size[name] != used[name]:
            sys.exit(f"{HEADER}: struct {name} has {size[name] - used[name]} bytes of padding; give them a field")


def job_types():
    """The Go types of what the tester's office and its engine say to each other."""
    global HEADER, PACKAGE, PREFIX
    HEADER, PACKAGE, PREFIX = os.path.join(os.path.dirname(HERE), "traffic/job/job.h"), "job", "job_"
    parse.cache_clear()
    layout.cache_clear()
    layout()  # refuses padding
    return go_types()


if __name__ == "__main__":
    actions = {"types": go_types, "layout": locked, "digests": digest_table, "job": job_types}  # `job` is the last
    if len(sys.argv) < 3 or not set(sys.argv[2:]) <= set(actions):
        sys.exit("usage: godefs.py DIR types|layout|digests|job...")
    for action in sys.argv[2:]:
        with open(os.path.join(sys.argv[1], action), "w", encoding="utf-8") as file:
            file.write(actions[action]())
