"""Random programs that put arrays into lists by turns, read all that they have appended, and compare letters."""

from capture.loop_programs import HEAD, Program

LAYERS = """
    ring, pairs = [x * 1.0, 0.5 * x, 0.2 * x[::-1].copy()], [(x * 1.0, 0.1), (0.3 * x, x[0])]
    seen, rows, path, same, text = [x[0], 0.1], [x * 1.0], x[:2], None, "abcab"

    class Log:
        pass

    log = Log()
    log.path, log.n = x[:1], 0
"""
LEFT = """    s = s + sum(0.1 * (k_ + 1) * np.sum(a_) for k_, a_ in enumerate(ring)) + 0.1 * pairs[0][1]
    s = s + 0.2 * pairs[1][1]
    s = s + 0.1 * np.sum(pairs[0][0]) - 0.2 * np.sum(pairs[1][0]) + 0.1 * sum(seen) + 0.2 * seen[-1] + 0.01 * len(seen)
    s = s + sum(0.1 * np.sum(a_) / (k_ + 1) for k_, a_ in enumerate(rows)) + 0.1 * np.sum(path) + 0.1 * path[-1]
    s = s + 0.1 * np.sum(log.path * np.cos(np.arange(len(log.path)))) + 0.01 * log.n
    s = s + (0.0 if same is None else 0.1 * np.sum(same[0]))
"""


class LayerProgram(Program):
    """A random program of lists of arrays, and of lists that are read as a whole."""

    head = HEAD + LAYERS

    def __init__(self, seed):
        super().__init__(seed)
        self.text = self.text.replace("    return 0.3 *", LEFT + "    return 0.3 *")

    def turn(self, n):
        i = self.pick(*self.counters) if self.counters else "n"
        return self.pick(f"{i} % {n}", f"({i} + 1) % {n}", f"({i} + c) % {n}", f"({i} - 1) % {n}", "0", "-1")

    def value(self, depth=2):
        if self.random.random() < 0.7:
            return super().value(depth)
        return self.pick(
            f"ring[{self.turn(3)}][{self.place()}]", f"np.sum(ring[{self.turn(3)}])", f"pairs[{self.turn(2)}][1]",
            "np.mean(seen)", "seen[len(seen) // 2]", "sum(seen) / len(seen)", "np.array(seen)[-3:].mean()", "seen[-1]",
            f'(0.1 if text[{self.turn(5)}] == "a" else 0.2)', "0.1 * np.max(seen)", "0.2 * np.mean(rows)",
            f"0.1 * rows[len(rows) // 2][{self.place()}]", "np.mean(path)", "path[len(path) // 2]", "0.1 * path[-2]",
            "log.path[-1]", "0.1 * np.sum(log.path)", "0.01 * len(log.path)",
        )  # fmt: skip

    def statement(self, level, in_loop=True):
        if self.random.random() < 0.45 or self.left <= 0:
            return super().statement(level, in_loop)
        self.left -= 1
        a, b = self.value(1), self.value(0)
        often = [
            f"ring[{self.turn(3)}] = 0.5 * ring[{self.turn(3)}] + 0.1 * {a}",
            f"ring[{self.turn(3)}] = np.sin(ring[{self.turn(3)}]) * {b}",
            f"ring[{self.turn(3)}] = 0.9 * {self.vector()}",
            f"e = ring[{self.turn(3)}]; s = 0.5 * s + 0.1 * e[{self.place()}]",
            f"e = 0.5 * ring[{self.turn(3)}]; e[{self.place()}] = {b}; ring[{self.turn(3)}] = e",
            f"pairs[{self.turn(2)}] = (0.5 * pairs[{self.turn(2)}][0] + {b}, {a})",
            f"e, g = pairs[{self.turn(2)}]; pairs[{self.turn(2)}] = (0.7 * e, g + 0.1 * {b})",
            f"seen.append({a})", f"seen.append(0.5 * np.mean(seen) + {b})", f"rows.append(0.5 * rows[-1] + 0.1 * {b})",
            f"path = np.append(path, 0.5 * path[-1] + 0.1 * {a})", f"log.path = np.append(log.path, {a}); log.n += 1",
        ]  # fmt: skip
        rarely = [
            f"ring[{self.turn(3)}] = u", f"u = ring[{self.turn(3)}]", f"v = ring[{self.turn(3)}] * 0.9; v[0] = {b}",
            f"ring[{self.turn(3)}][{self.place()}] = {b}", f"ring[{self.turn(3)}] = ring[{self.turn(3)}]",
            f"ring[0] = {self.vector()}", "same = ring", f"same = [ring[{self.turn(3)}]]",
            f"ring[{self.turn(3)}] = m[1]",
            f"e = ring[{self.turn(3)}]; e *= 0.9", f"rows[0][{self.place()}] = {b}", "rows.append(u)", "same = rows",
            f"rows[-1][{self.place()}] = {b}", f"u = rows[len(rows) // 2] * 1.0; u[1] = {b}", "same = log.path[:2]",
            "u = rows[len(rows) // 2]", "log.path = path", "ring = ring[1:] + ring[:1]", f"seen[0] = {b}",
        ]  # fmt: skip
        return self.add(level, self.pick(*(often if self.random.random() < 0.85 else rarely)))
