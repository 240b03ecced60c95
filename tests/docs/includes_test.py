#!/usr/bin/env python3
"""includes_test.py [--write | --show]: who includes whom is as includes.txt says.

A room is a folder of sources. Its row names the rooms whose files its own may include: an include that no row allows fails, and so does a
row that allows what nobody does. A unit is a header with its source. Units that include each other, directly or around corners, are a circle;
includes.txt says how large the largest may be, and names the larger ones that there still are: none of those may grow. Nor may the number
of classes that hand out their only object (`Get()`).

--write makes the rows anew, and leaves the numbers as they are. --show prints circles and singletons.
"""
import collections
import os
import re
import sys

from documents import ROOT

TABLE = ROOT / "tests/docs/includes.txt"
PRODUCT = ("rewriter", "sim", "scheduler", "interpose")
ENDINGS = (".h", ".cpp", ".def", ".cu", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SINGLETON = re.compile(r"^\s*static (\w+)\s*[&*] ?Get\(\)", re.M)
OF_GUESTS = "interpose/include/"  # headers that programs include, not the shim


def sources():
    for top in PRODUCT:
        for folder, _, names in os.walk(ROOT / top):
            for name in names:
                if name.endswith(ENDINGS):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


class Includes:
    def __init__(self):
        files = {path: (ROOT / path).read_text() for path in sources()}
        self.units, self.rooms = collections.defaultdict(set), collections.defaultdict(dict)
        self.singletons = []
        for path, text in sorted(files.items()):
            self.units[os.path.splitext(path)[0]]
            self.rooms[os.path.dirname(path)]
            if not path.startswith(OF_GUESTS):
                self.singletons += [f"{name} ({path})" for name in SINGLETON.findall(text)]
            for name in INCLUDE.findall(text):
                # From the root, from beside the file, or from `interpose`, the shim's second root.
                found = next((c for c in (name, os.path.normpath(os.path.join(os.path.dirname(path), name)), "interpose/" + name) if c in files), None)
                if found is None:
                    continue
                one, other = (os.path.splitext(p)[0] for p in (path, found))
                if one != other:
                    self.units[one].add(other)
                if os.path.dirname(path) != os.path.dirname(found):
                    self.rooms[os.path.dirname(path)].setdefault(os.path.dirname(found), f"{path} includes {found}")

    def circles(self):
        """Strongly connected units, more than one each, the largest first (Tarjan, without recursion)."""
        number, lowest, stack, on_stack, circles = {}, {}, [], set(), []
        for start in self.units:
            if start in number:
                continue
            work = [(start, iter(sorted(self.units[start])))]
            number[start] = lowest[start] = len(number)
            stack.append(start)
            on_stack.add(start)
            while work:
                unit, rest = work[-1]
                for other in rest:
                    if other not in number:
                        number[other] = lowest[other] = len(number)
                        stack.append(other)
                        on_stack.add(other)
                        work.append((other, iter(sorted(self.units[other]))))
                        break
                    if other in on_stack:
                        lowest[unit] = min(lowest[unit], number[other])
                else:
                    work.pop()
                    if work:
                        lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[unit])
                    if lowest[unit] == number[unit]:
                        circle = []
                        while not circle or circle[-1] != unit:
                            circle.append(stack.pop())
                            on_stack.discard(circle[-1])
                        if len(circle) > 1:
                            circles.append(sorted(circle))
        return sorted(circles, key=lambda circle: (-len(circle), circle))


def read_table():
    """(rooms each room may include, numbers by name)"""
    rooms, numbers = {}, {}
    for line in TABLE.read_text().splitlines():
        line = line.split("#")[0].strip()
        if " = " in line:
            name, value = line.split(" = ")
            numbers[name] = int(value)
        elif line:
            room, allowed = line.split(":")
            rooms[room] = set(allowed.split())
    return rooms, numbers


def problems(includes):
    rooms, numbers = read_table()
    for room, included in sorted(includes.rooms.items()):
        if room not in rooms:
            yield f"{room}: a room without a row"
            continue
        for other, where in sorted(included.items()):
            if other not in rooms[room]:
                yield f"{room} may not include {other}: {where}"
        for other in sorted(rooms[room] - set(included)):
            yield f"{room} includes nothing of {other}: strike it out of its row"
    for room in sorted(set(rooms) - set(includes.rooms)):
        yield f"{room}: a row without a room"
    most = numbers.pop("circle")
    singletons = numbers.pop("singletons")
    for circle in includes.circles():
        home = collections.Counter(os.path.dirname(unit) for unit in circle).most_common(1)[0][0]
        allowed = numbers.pop(home, most) if len(circle) > most else most
        if len(circle) > allowed:
            yield f"{len(circle)} units, not {allowed}, include each other around {home}: {' '.join(circle)}"
        elif most < len(circle) < allowed:
            yield f"the circle around {home} has {len(circle)} units: say so in place of {allowed}"
    for home in numbers:
        yield f"no circle of more than {most} units is around {home}: strike out its number"
    if len(includes.singletons) > singletons:
        yield f"{len(includes.singletons)} singletons, not {singletons}: {', '.join(includes.singletons)}"
    elif len(includes.singletons) < singletons:
        yield f"{len(includes.singletons)} singletons: say so in place of {singletons}"


def write(includes):
    kept = [line for line in TABLE.read_text().splitlines() if not re.match(r"[\w/]+:", line)]
    while kept and not kept[-1]:
        kept.pop()
    rows = [f"{room}: {' '.join(sorted(included))}".rstrip() for room, included in sorted(includes.rooms.items())]
    TABLE.write_text("\n".join([*kept, "", *rows]) + "\n")


def main():
    includes = Includes()
    if "--write" in sys.argv[1:]:
        write(includes)
    if "--show" in sys.argv[1:]:
        for circle in includes.circles():
            print(len(circle), *circle)
        print(len(includes.singletons), "singletons:", *includes.singletons, sep="\n  ")
        return 0
    found = list(problems(includes))
    print("\n".join(found) or f"{len(includes.rooms)} rooms include each other as tests/docs/includes.txt allows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
