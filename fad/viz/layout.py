"""Where the boxes of a drawing go: layers from top to bottom, few crossings, lines that pass between the boxes.

The method is that of K. Sugiyama, S. Tagawa and M. Toda (IEEE Trans. SMC 11, 1981): a layer for each box, a place in
the layer for each line that passes through it, an order within layers by the mean place of the neighbours, and places
as close to that mean as the order allows. A line over many layers would say little: it is left out, and named.
"""

from __future__ import annotations

from collections.abc import Sequence

FAR = 8  # a line over more layers than this is not drawn
_SWEEPS = 8
_GAP = 24.0  # between boxes side by side
_LANE = 10.0  # the width of a line that passes through a layer
_STEP = 34.0  # from the lower edge of a layer to the upper edge of the next

Point = tuple[float, float]


class Layout:
    """Corners of boxes (upper left), lines between them as pairs of points, and what was too far apart for a line."""

    def __init__(self, corners: list[Point], lines: list[tuple[Point, Point, bool]], far: list, size: Point):
        self.corners = corners
        self.lines = lines  # (from, to, whether it ends at a box)
        self.far = far  # (parent, child)
        self.size = size


def layers_of(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return the layer of each box: right below its lowest parent, unless it has none, or is used much later only:
    then right above its first child."""
    layer: list[int] = []
    for above in parents:
        layer.append(1 + max((layer[p] for p in above), default=-1))
    first: dict[int, int] = {}
    for i in reversed(range(len(layer))):
        if i in first and (not parents[i] or first[i] - layer[i] > FAR):
            layer[i] = first[i] - 1
        for p in parents[i]:
            first[p] = min(first.get(p, layer[i]), layer[i])
    return layer


class _Net:
    """Boxes and the places where lines pass, in layers; ``up[i]`` and ``down[i]`` are the neighbours of i."""

    def __init__(self, widths: Sequence[float], parents: Sequence[Sequence[int]]):
        self.width = list(widths)
        self.layer = layers_of(parents)
        self.up: list[list[int]] = [[] for _ in widths]
        self.down: list[list[int]] = [[] for _ in widths]
        self.far: list[tuple[int, int]] = []
        passing: dict[tuple[int, int], int] = {}
        for child, above in enumerate(parents):
            for p in dict.fromkeys(above):
                if self.layer[child] - self.layer[p] > FAR:
                    self.far.append((p, child))
                else:
                    self._join(self._trunk(p, self.layer[child] - 1, passing), child)
        self.rows: list[list[int]] = [[] for _ in range(1 + max(self.layer, default=0))]
        for i, layer in enumerate(self.layer):
            self.rows[layer].append(i)

    def _join(self, above: int, below: int) -> None:
        self.down[above].append(below)
        self.up[below].append(above)

    def _trunk(self, p: int, to: int, passing: dict) -> int:
        """Return what stands for p in a layer: lines to several children share their way down."""
        last = p
        for layer in range(self.layer[p] + 1, to + 1):
            found = passing.get((p, layer))
            if found is None:
                found = passing[p, layer] = len(self.layer)
                self.layer.append(layer)
                self.width.append(_LANE)
                self.up.append([])
                self.down.append([])
                self._join(last, found)
            last = found
        return last

    def order(self) -> None:
        """Sort each layer by the mean place of the neighbours above, then below, a few times over."""
        place = {i: k for row in self.rows for k, i in enumerate(row)}
        for sweep in range(_SWEEPS):
            for row in self.rows if sweep % 2 == 0 else self.rows[::-1]:
                near = self.up if sweep % 2 == 0 else self.down
                wanted = {i: _mean([place[j] for j in near[i]], place[i]) for i in row}
                row.sort(key=wanted.__getitem__)
                place.update({i: k for k, i in enumerate(row)})

    def centres(self) -> list[float]:
        """Return the middle of each box and passing line: near the mean of its neighbours, in order, disjoint."""
        x = [0.0] * len(self.layer)
        for row in self.rows:
            right = 0.0
            for i in row:
                x[i] = right + self.width[i] / 2
                right += self.width[i] + _GAP
        for sweep in range(2 * _SWEEPS):
            for row in self.rows if sweep % 2 == 0 else self.rows[::-1]:
                near = self.up if sweep % 2 == 0 else self.down
                self._settle(row, [_mean([x[j] for j in near[i]], x[i]) for i in row], x)
        left = min((x[i] - self.width[i] / 2 for i in range(len(x))), default=0.0)
        return [v - left for v in x]

    def _settle(self, row: list[int], wanted: list[float], x: list[float]) -> None:
        """Put a row as close to where it is wanted (least squares) as its order and widths allow."""
        offset, offsets = 0.0, []
        for k, i in enumerate(row):
            if k:
                offset += (self.width[row[k - 1]] + self.width[i]) / 2 + _GAP
            offsets.append(offset)
        blocks: list[list[float]] = []  # [sum of places less offsets, how many]: pooled until they increase
        for w, o in zip(wanted, offsets, strict=True):
            blocks.append([w - o, 1.0])
            while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
                total, count = blocks.pop()
                blocks[-1][0] += total
                blocks[-1][1] += count
        k = 0
        for total, count in blocks:
            for _ in range(int(count)):
                x[row[k]] = total / count + offsets[k]
                k += 1


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def layout(sizes: Sequence[Point], parents: Sequence[Sequence[int]]) -> Layout:
    """Lay out boxes of given sizes, each after its parents, from top to bottom."""
    n = len(sizes)
    net = _Net([w for w, _ in sizes], parents)
    net.order()
    x = net.centres()
    tops, y = [], 0.0
    heights = [max((sizes[i][1] for i in row if i < n), default=0.0) for row in net.rows]
    for high in heights:
        tops.append(y)
        y += high + _STEP
    high_of = lambda i: sizes[i][1] if i < n else heights[net.layer[i]]
    lines = [
        ((x[i], tops[net.layer[i]] + high_of(i)), (x[j], tops[net.layer[j]]), j < n)
        for i, below in enumerate(net.down)
        for j in below
    ]
    # a passing line goes straight through its layer
    lines += [((x[i], t), (x[i], t + high_of(i)), False) for i in range(n, len(x)) for t in (tops[net.layer[i]],)]
    corners = [(x[i] - sizes[i][0] / 2, tops[net.layer[i]]) for i in range(n)]
    wide = max((x[i] + net.width[i] / 2 for i in range(len(x))), default=0.0)
    return Layout(corners, lines, net.far, (wide, max(y - _STEP, 0.0)))
