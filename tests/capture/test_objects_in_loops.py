"""Loops whose steps bind attributes, items of dictionaries and lists, or names to objects that they make."""

import collections
import dataclasses
import types

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.7, 0.3, 1.2])
STEPS = 9


class Pendulum:
    def __init__(self, angle):
        self.angle = angle
        self.speed = 0.0
        self.steps = 0

    def step(self, h):
        self.speed = self.speed - h * np.sin(self.angle)
        self.angle += h * self.speed
        self.steps += 1

    @property
    def energy(self):
        return 0.5 * self.speed**2 - np.cos(self.angle)


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    def norm(self):
        return np.sqrt(self.x**2 + self.y**2)


@dataclasses.dataclass(frozen=True)
class State:
    x: float
    v: float
    name: str = "spring"

    def step(self, h):
        return State(self.x + h * self.v, self.v - h * np.sin(self.x), self.name)


class Slotted:
    __slots__ = ("v", "x")

    def __init__(self, x):
        self.x, self.v = x, 0.0


class Private:
    __rate = 0.9

    def __init__(self, x):
        self.__x = x

    def step(self):
        __new = self.__rate * self.__x
        self.__x = __new + 0.1
        return (lambda: self.__x)()


class Base:
    def __init__(self, x):
        self.x = x

    def step(self):
        self.x = self.x * 0.9 + 0.1
        return self.x


class Derived(Base):
    def __init__(self, x):
        super().__init__(x)
        self.twice = 0

    def step(self):
        self.twice += 2
        return super().step() * self.twice


def attributes(x):
    p = Pendulum(x[0])
    for _ in range(STEPS):
        p.step(0.1 * x[1])
        if p.angle > 0.65:
            p.speed *= 0.9
        elif p.speed < -x[1]:
            p.steps += 2
    return p.angle * p.steps + p.energy


def attributes_that_are_arrays(x):
    class Rod:
        def __init__(self):
            self.u, self.t = np.zeros(6), 0.0
            self.u[2:5] = x

        def advance(self, h):
            self.u[1:-1] += h * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
            self.t += h

        def replace(self, h):
            u = self.u * 1.0
            u[0] = u[1] * h
            self.u = u

    rod = Rod()
    for _ in range(STEPS):
        rod.advance(0.1)
        rod.replace(0.5)
    return np.sum(rod.u**2) * rod.t


def attributes_that_change_places(x):
    grid = types.SimpleNamespace(old=x * 1.0, new=np.zeros(3))
    for k in range(STEPS):
        grid.new[1:] = grid.old[:-1] * 0.9 + 0.1 * k
        grid.old, grid.new = grid.new, grid.old
    return np.sum(grid.old) + 2 * np.sum(grid.new * x)


def items_of_a_dictionary(x):
    state = {"a": x[0], "b": x[1]}
    for _ in range(STEPS):
        state["a"], state["b"] = state["a"] + 0.1 * state["b"], state["b"] - 0.1 * np.sin(state["a"])
        state["a"] *= 0.99
    return state["a"] * state["b"]


def items_that_the_first_step_makes(x):
    found, sums = {}, collections.defaultdict(float)
    for k in range(STEPS):
        found["last"] = x[0] * k
        sums["all"] += found["last"]
        if k % 2:
            sums["odd"] -= x[1]
    return found["last"] * sums["all"] + sums["odd"]


def items_of_a_list(x):
    s = [x[0], x[1], x[2]]
    for _ in range(STEPS):
        s[0] += 0.1 * s[1]
        s[-1] = s[-1] * 0.5 + s[0]
    return s[0] * s[2]


def a_dictionary_of_a_closure(x):
    clock = {"t": 0.0}

    def slope(y):
        clock["t"] += 0.1
        return -y * clock["t"]

    y = x[0]
    for _ in range(STEPS):
        y = y + 0.1 * slope(y)
    return y * clock["t"]


def bodies_that_attract_each_other(x):
    bodies = [Pendulum(a) for a in x]
    for _ in range(STEPS):
        for p in bodies:
            for q in bodies:
                if q is not p:
                    p.speed += 0.01 * (q.angle - p.angle)
        for p in bodies:
            p.angle = p.angle + 0.1 * p.speed
    return sum(p.angle * (k + 1) for k, p in enumerate(bodies))


def layers_by_hand(x):
    class Layer:
        def __init__(self, n, m):
            self.w, self.b = np.linspace(-0.5, 0.5, n * m).reshape(n, m), np.zeros(m)

        def forward(self, u):
            self.u, self.a = u, np.tanh(u @ self.w + self.b)
            return self.a

        def backward(self, g, rate):
            g = g * (1 - self.a**2)
            back = g @ self.w.T
            self.w -= rate * np.outer(self.u, g)
            self.b -= rate * g
            return back

    layers, errors = [Layer(3, 4), Layer(4, 2)], []
    for _ in range(STEPS):
        h = x
        for layer in layers:
            h = layer.forward(h)
        errors.append(np.sum((h - 0.3) ** 2))
        g = 2 * (h - 0.3)
        for layer in reversed(layers):
            g = layer.backward(g, 0.1)
    return sum(errors)


def a_world_of_particles(x):
    class Particle:
        def __init__(self, place, mass):
            self.x, self.v, self.m, self.path = place, np.zeros(2), mass, []

    class World:
        def __init__(self):
            self.t = 0.0
            self.ps = [Particle(np.array([0.0, a]), 1.0 + k) for k, a in enumerate(x)]

        def forces(self):
            found = [np.zeros(2) for _ in self.ps]
            for i, p in enumerate(self.ps):
                for j, q in enumerate(self.ps):
                    if i != j:
                        d = q.x - p.x
                        found[i] += p.m * q.m * d / (np.sum(d**2) + 0.1)
            return found

        def step(self, h):
            for p, f in zip(self.ps, self.forces(), strict=True):
                p.v = p.v + h * f / p.m
                p.x = p.x + h * p.v
                p.path.append(p.x)
            self.t += h

    w = World()
    for _ in range(STEPS):
        w.step(0.1)
    return np.sum(np.array(w.ps[1].path) ** 2) * w.t + w.ps[0].v[1]


def an_object_in_a_while_loop(x):
    p = Pendulum(x[0])
    while p.steps < STEPS and p.angle < 10.0:
        p.step(0.1)
        p.angle *= 1.1
    return p.angle * p.steps


def an_object_in_a_loop_with_break(x):
    p = Pendulum(x[0])
    for k in range(50):
        p.step(0.1 + 0.001 * k)
        p.angle *= 1.2
        if p.angle > 1.5:
            break
    return p.angle + k


def an_object_in_two_loops(x):
    p = Pendulum(x[0])
    for i in range(STEPS):
        for j in range(STEPS):
            p.speed += 0.01 * p.angle * j
            if j > i:
                p.steps += 1
        p.angle -= p.speed * 0.01
    return p.angle * p.steps


def slots(x):
    p = Slotted(x[0])
    for _ in range(STEPS):
        p.v -= 0.1 * p.x
        p.x += 0.1 * p.v
    return p.x * p.v


def private_names(x):
    p, s = Private(x[0]), 0.0
    for _ in range(STEPS):
        s = s + p.step()
    return s


def methods_of_a_base_class(x):
    p, s = Derived(x[0]), 0.0
    for _ in range(STEPS):
        s = s + p.step()
    return s * p.twice


def an_object_that_is_called(x):
    class Mean:
        def __init__(self):
            self.n, self.total = 0, 0.0

        def __call__(self, v):
            self.n += 1
            self.total = self.total + v * v
            return self.total / self.n

    mean, y = Mean(), x[0]
    for _ in range(STEPS):
        y = np.tanh(mean(y) + x[1])
    return y + mean.n


def a_setter(x):
    class Positive:
        def __init__(self, v):
            self._v = v

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, value):
            self._v = abs(value)

    p = Positive(x[0])
    for _ in range(STEPS):
        p.v = p.v - 0.2
    return p.v


def an_attribute_of_the_class_until_it_is_set(x):
    class Counter:
        n, y = 0, 1.0

        def tick(self, v):
            self.n += 1
            self.y = self.y * 0.9 + v

    a, b = Counter(), Counter()
    for _ in range(STEPS):
        a.tick(x[0])
    return a.y * a.n + b.n + Counter.n + len(vars(b))


def new_vectors(x):
    place, speed = Vector(x[0] + 1.0, 0.0), Vector(0.0, x[1])
    for _ in range(STEPS):
        speed = speed + place * (-0.1 / place.norm() ** 3)
        place = place + speed * 0.1
    return place.norm() + speed.x


def frozen_states(x):
    s = State(x[0], x[1])
    for k in range(STEPS):
        s = s.step(0.1)
        s = dataclasses.replace(s, v=s.v * 0.99) if k else s
    return s.x * s.v


def vectors_within_objects(x):
    class Body:
        def __init__(self):
            self.place, self.speed, self.mass = Vector(x[0], 1.0), Vector(0.0, x[1]), 1.0

        def kick(self, force, h):
            self.speed = self.speed + force * (h / self.mass)

    b = Body()
    for k in range(STEPS):
        b.place = b.place + b.speed * 0.1
        if b.place.x > 0.9:
            b.speed = Vector(-0.1 * k, b.speed.y)
            b.mass = b.mass + 0.1
        b.kick(Vector(0.1, x[2]), 0.1)
    return b.place.norm() * b.mass


def one_of_two_new_vectors(x):
    p = Vector(x[0], 1.0)
    for _ in range(STEPS):
        p = p * 1.3 if p.x < 1.0 else p * 0.5
    return p.x * p.y


def lists_of_vectors(x):
    all_ = [Vector(x[0], 1.0), Vector(0.0, x[1])]
    for _ in range(STEPS):
        all_ = [v * 1.1 for v in all_]
    return all_[0].x + all_[1].y


def objects_of_a_step(x):
    s = 0.0
    for k in range(STEPS):
        p = Derived(x[0] * k)
        p.x += 1.0
        parts = {"a": p.step()}
        parts["b"] = parts["a"] * 0.5
        rows = [s]
        for j in range(3):
            rows.append(rows[-1] * 0.9 + parts["b"] * j)
        rows[0] = 0.0
        s = sum(rows) * 0.1
    return s


def the_better_of_candidates(x):
    best, path, seen = Vector(x[0], 1.0), [x[1], 0], x[2]
    for k in range(STEPS):
        seen = 3.3 * seen * (1.2 - seen)
        candidate = Vector(np.sin(seen), best.y * 0.9)
        if candidate.x > best.x:
            best = candidate
        row = [seen, k]
        if seen > path[0]:
            path = row
    best.x += path[0]
    return best.x * best.y + path[1]


Fields = collections.namedtuple("Fields", ["position", "speed"])


def replaced_fields(x):
    s = Fields(x[0], x[1])
    for _ in range(STEPS):
        s = s._replace(position=s.position + 0.1 * s.speed, speed=s.speed - 0.1 * np.sin(s.position))
    return s.position + sum(s._asdict().values())


CAPTURED = [
    attributes, attributes_that_are_arrays, attributes_that_change_places, items_of_a_dictionary,
    items_that_the_first_step_makes, items_of_a_list, a_dictionary_of_a_closure, an_object_in_a_while_loop,
    an_object_in_a_loop_with_break, an_object_in_two_loops, slots, private_names, methods_of_a_base_class,
    an_object_that_is_called, a_setter, an_attribute_of_the_class_until_it_is_set, new_vectors, frozen_states,
    vectors_within_objects, one_of_two_new_vectors, lists_of_vectors, objects_of_a_step,
    bodies_that_attract_each_other, layers_by_hand, a_world_of_particles,
    the_better_of_candidates, replaced_fields,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_changes_objects_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert "captured" in what, text


# --- what others see --------------------------------------------------------------------------------------------------


def changed_by_another_name(x):
    p = Vector(x[0], 1.0)
    q = p
    for k in range(STEPS):
        p.x = p.x * 1.1
        if k == 5:
            q = Vector(p.x, x[1])
    return p.x + q.x * q.y


def changed_and_made_anew(x):
    p = Vector(x[0], x[1])
    for _ in range(STEPS):
        p.x = p.x + 0.1
        p = p * 1.1
    return p.x + p.y


def bound_to_two_names(x):
    p = Vector(x[0], 1.0)
    for _ in range(STEPS):
        q = p = p * 1.1
    q.x = 7.0
    return p.x * x[1] + p.y


def the_best_so_far(x):
    at = Vector(x[0], 1.0)
    best = at
    for k in range(STEPS):
        at = Vector(np.sin(at.x + k), at.y * 0.9)
        if at.x > best.x:
            best = at
    best.y = 3.0 * x[1]
    return best.x * best.y + at.x * at.y


def names_change_places(x):
    p, q = Vector(x[0], 1.0), Vector(2.0, x[1])
    for _ in range(STEPS):
        p, q = q, p
        p.x += 0.1
    return p.x * 2 + q.x


def one_of_two_objects(x):
    p, q = Pendulum(x[0]), Pendulum(x[1])
    for k in range(STEPS):
        r = p if k < 4 else q
        r.angle += 0.1 * x[2]
    return p.angle * q.angle


def one_list_in_two_names(x):
    s, t = [x[0], 0.0], [x[1], 0.0]
    for _ in range(STEPS):
        s = t = [s[0] * 0.9, t[1] + 0.1]
    s[0] = 5.0
    return t[0] * x[0] + s[1]


def an_attribute_of_a_class(x):
    class Total:
        all_ = 0.0

    for k in range(STEPS):
        Total.all_ = Total.all_ + x[0] * k
    return Total.all_


def a_list_within_an_object(x):
    class Weights:
        def __init__(self):
            self.w = [x[0], x[1], x[2]]

    h = Weights()
    for _ in range(STEPS):
        h.w[0] += 0.1 * h.w[1]
        h.w = [h.w[2] * 1.0, h.w[0], h.w[1]]
    return h.w[0] + 2 * h.w[1]


def a_setter_of_any_attribute(x):
    class Doubling:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value * 2.0)

    d = Doubling()
    d.v = x[0]
    for _ in range(STEPS):
        d.v = d.v * 0.4
    return d.v


def a_condition_that_counts(x):
    p = Pendulum(x[0])

    def goes_on():
        p.steps += 1
        return p.steps < STEPS

    while goes_on():
        p.angle = p.angle * 1.1
    return p.angle * p.steps


AS_PYTHON_DOES = [
    changed_by_another_name, changed_and_made_anew, bound_to_two_names, the_best_so_far, names_change_places,
    one_of_two_objects, one_list_in_two_names, an_attribute_of_a_class, a_list_within_an_object,
    a_setter_of_any_attribute, a_condition_that_counts,
]  # fmt: skip


@pytest.mark.parametrize("f", AS_PYTHON_DOES, ids=lambda f: f.__name__)
def test_objects_are_what_they_are_to_everybody_who_knows_them(f):
    agree(f, X, order=1)


COUNTER = types.SimpleNamespace(calls=0)


def test_an_object_from_outside_keeps_pythons_numbers():
    def f(x):
        for _ in range(STEPS):
            COUNTER.calls += 1
            x = x * 1.1
        return x

    COUNTER.calls = 0
    with fad.config.use(loops="capture"):
        fad.jit(f)(1.0)
    assert type(COUNTER.calls) is int
    assert COUNTER.calls == STEPS


def test_an_object_is_what_it_was_if_a_step_raises():
    p = Pendulum(1.0)

    def f(x):
        q = Pendulum(x)
        seen.append(q)
        for k in range(STEPS):
            q.steps = k
            if k == 4:
                raise ValueError("it is broken")
        return q.angle

    seen = []
    with pytest.raises(ValueError, match="broken"):
        fad.jit(f)(p.angle)
    assert [q.steps for q in seen] == [4] * len(seen)


def a_dictionary_that_is_changed_behind_the_loop(x):
    d = collections.defaultdict(float)
    d["a"] = x[0]
    for i in range(20):
        last = d
        d["a"] = 0.5 * d["a"] + x[i % 5]
    d["a"] = x[2]
    return last["a"] * 2 + d["a"]


def an_ordered_dictionary_with_another_name_in_one_way(x):
    d, last, s = collections.OrderedDict(a=x[0]), collections.OrderedDict(a=0.0), 0.0
    for i in range(20):
        d["a"] = 0.5 * d["a"] + x[i % 5]
        if x[i % 5] > 0.8:
            last = d
        s += last["a"]
    return s


@pytest.mark.parametrize(
    "f",
    [a_dictionary_that_is_changed_behind_the_loop, an_ordered_dictionary_with_another_name_in_one_way],
    ids=lambda f: f.__name__,
)
def test_a_container_of_another_class_is_known_by_its_other_names(f):
    agree(f, np.array([0.71, -0.42, 1.13, 0.33, 0.89]))
