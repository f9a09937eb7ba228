"""Scripts that need more than a gradient: hooks, computed weights, higher derivatives, rules of their own."""

# ruff: noqa: B007, B905, RUF007  (as such scripts have it)

import math

import numpy as np
from scripts import DATA, IMAGES, LABELS, same


def hooks(torch):
    nn, F = torch.nn, torch.nn.functional
    model = same(torch, nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(4, 3),
    ))  # fmt: skip
    activations, gradients, seen = {}, {}, []

    def save_activation(name):
        def hook(module, input, output):
            activations[name] = output.detach()

        return hook

    def save_gradient(module, grad_input, grad_output):
        gradients["last"] = grad_output[0]

    handles = [model[2].register_forward_hook(save_activation("last"))]
    handles.append(model[2].register_full_backward_hook(save_gradient))
    handles.append(model[6].weight.register_hook(lambda g: seen.append(g.norm().item()) or g.clamp(-0.01, 0.01)))
    x = torch.from_numpy(IMAGES[:4])
    logits = model(x)
    score = logits[torch.arange(4), logits.argmax(1)].sum()
    model.zero_grad()
    score.backward()
    weights = gradients["last"].mean(dim=(2, 3), keepdim=True)
    cam = F.relu((weights * activations["last"]).sum(1))
    cam = (cam - cam.amin((1, 2), keepdim=True)) / (cam.amax((1, 2), keepdim=True) + 1e-8)
    for handle in handles:
        handle.remove()
    saliency = x.clone().requires_grad_(True)
    model(saliency).max(1)[0].sum().backward()
    probs = F.interpolate(cam.unsqueeze(1), scale_factor=2, mode="bilinear", align_corners=False)
    return [
        cam.mean().item(), cam.std().item(), model[6].weight.grad.abs().max().item(), *seen,
        saliency.grad.abs().amax(1).sum().item(), probs.sum().item(),
    ]  # fmt: skip


def norms_of_weights(torch):
    nn = torch.nn
    parametrizations, parametrize = nn.utils.parametrizations, nn.utils.parametrize

    class Skew(nn.Module):
        def forward(self, X):
            return X.triu(1) - X.triu(1).transpose(-1, -2)

    class Cayley(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.register_buffer("Id", torch.eye(n))

        def forward(self, X):
            return torch.linalg.solve(self.Id + X, self.Id - X)

    turn = nn.Linear(12, 12, bias=False)
    parametrize.register_parametrization(turn, "weight", Skew())
    parametrize.register_parametrization(turn, "weight", Cayley(12))
    normed = parametrizations.weight_norm(nn.Linear(12, 8))
    spectral = parametrizations.spectral_norm(nn.Linear(8, 3), n_power_iterations=5)
    model = same(torch, nn.Sequential(turn, normed, nn.Tanh(), spectral))
    rng = np.random.default_rng(2)
    for name, b in spectral.parametrizations.weight[0].named_buffers():
        v = torch.tensor(rng.normal(size=b.shape).astype("float32"))
        b.copy_(v / v.norm())
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-2)
    x, y, out = torch.from_numpy(DATA), torch.tensor(LABELS), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        out += [loss.item(), torch.dist(turn.weight.T @ turn.weight, torch.eye(12)).item() < 1e-4]
    with torch.no_grad():
        out += [normed.weight.norm(dim=1).sum().item(), sum(p.numel() for p in model.parameters())]
    parametrize.remove_parametrizations(turn, "weight")
    return out + [len(list(turn.parameters())), len(model.state_dict())]


def hessian_vector_products(torch):
    nn = torch.nn
    model = same(torch, nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 3)))
    x, y = torch.from_numpy(DATA), torch.tensor(LABELS)
    params = [p for p in model.parameters() if p.requires_grad]

    def hvp(vec):
        loss = nn.functional.cross_entropy(model(x), y)
        grads = torch.autograd.grad(loss, params, create_graph=True)
        flat = torch.cat([g.contiguous().view(-1) for g in grads])
        prod = torch.dot(flat, vec)
        return torch.cat([h.reshape(-1) for h in torch.autograd.grad(prod, params, retain_graph=True)]).detach()

    n = sum(p.numel() for p in params)
    v = torch.linspace(-1, 1, n)
    v, out = v / torch.norm(v), []
    for _ in range(6):
        hv = hvp(v)
        eig = torch.dot(v, hv)
        v = hv / (torch.norm(hv) + 1e-12)
        out.append(eig.item())
    loss = nn.functional.cross_entropy(model(x), y)
    b = torch.nn.utils.parameters_to_vector(torch.autograd.grad(loss, params))
    z, r = torch.zeros(n), b.clone()
    p, rr = r.clone(), torch.dot(r, r)
    for _ in range(5):
        Ap = hvp(p) + 0.1 * p
        alpha = rr / torch.dot(p, Ap)
        z += alpha * p
        r -= alpha * Ap
        new = torch.dot(r, r)
        p = r + (new / rr) * p
        rr = new
    theta = torch.nn.utils.parameters_to_vector(params)
    torch.nn.utils.vector_to_parameters(theta - z, params)
    trace = sum(
        torch.dot(s, hvp(s)).item() for s in torch.sign(torch.from_numpy(np.sin(np.arange(3 * n))).float()).view(3, n)
    )
    return out + [nn.functional.cross_entropy(model(x), y).item(), trace / 3]


def neural_ode(torch):
    nn = torch.nn

    class ODEFunc(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 10), nn.Softplus(beta=2), nn.Linear(10, 2))
            for m in self.net.modules():
                if isinstance(m, nn.Linear):
                    nn.init.normal_(m.weight, mean=0, std=0.1)
                    nn.init.constant_(m.bias, val=0)

        def forward(self, t, y):
            return torch.tanh(self.net(y)) * torch.cos(t)

    def rk4(func, y0, ts):
        ys, y = [y0], y0
        for t, t1 in zip(ts[:-1], ts[1:]):
            h = t1 - t
            k1 = func(t, y)
            k2 = func(t + h / 2, y + h * k1 / 2)
            k3 = func(t + h / 2, y + h * k2 / 2)
            k4 = func(t1, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            ys.append(y)
        return torch.stack(ys)

    torch.set_default_dtype(torch.float64)
    try:
        ts = torch.linspace(0.0, 2.0, 9)
        A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
        y0 = torch.tensor([[2.0, 0.0]])
        true_y = rk4(lambda t, y: torch.mm(y, A), y0, ts)
        func = ODEFunc()
        rng = np.random.default_rng(3)
        for p in func.parameters():
            p.data = torch.from_numpy(0.2 * rng.normal(size=p.shape))
        optimizer = torch.optim.LBFGS(func.parameters(), max_iter=6, line_search_fn="strong_wolfe")
        out = []

        def closure():
            optimizer.zero_grad()
            loss = (rk4(func, y0, ts) - true_y).abs().pow(2).mean()
            loss.backward()
            return loss

        for _ in range(3):
            out.append(optimizer.step(closure).item())
        batch = rk4(func, torch.randn(1, 1).new_tensor([[1.0, 0.5], [0.2, -1.0]]), ts)
        return out + [batch.sum().item(), batch[-1, 0, 1].item()]
    finally:
        torch.set_default_dtype(torch.float32)


def burgers(torch):
    nn = torch.nn

    class PINN(nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.linears = nn.ModuleList([nn.Linear(a, b) for a, b in zip(layers[:-1], layers[1:])])
            self.nu = nn.Parameter(torch.tensor([0.05]))

        def forward(self, x, t):
            h = torch.hstack([x, t])
            for layer in self.linears[:-1]:
                h = torch.tanh(layer(h))
            return self.linears[-1](h)

    model = same(torch, PINN([2, 12, 12, 1]))
    with torch.no_grad():
        model.nu.fill_(0.05)
    grid = np.random.default_rng(4).uniform(-1, 1, (40, 2)).astype("float32")
    x, t = torch.from_numpy(grid[:, :1]).requires_grad_(), torch.from_numpy(np.abs(grid[:, 1:])).requires_grad_()
    x0 = torch.linspace(-1, 1, 11)[:, None]
    optimizer, out = torch.optim.Adam(model.parameters(), lr=5e-3), []
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=8, power=0.9)
    d = lambda y, x: torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True)[0]
    for epoch in range(6):
        optimizer.zero_grad()
        u = model(x, t)
        u_t, u_x = torch.autograd.grad(u, (t, x), torch.ones_like(u), create_graph=True)
        u_xx = d(u_x, x)
        residual = u_t + u * u_x - model.nu * u_xx
        initial = model(x0, torch.zeros_like(x0)) + torch.sin(math.pi * x0)
        ends = model(torch.cat([-torch.ones(5, 1), torch.ones(5, 1)]), torch.rand(10, 1) * 0 + 0.5)
        loss = (residual**2).mean() + (initial**2).mean() + ends.square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        out += [loss.item(), model.nu.item(), u_xx.norm().item()]
    return out


def mixed_functions(torch):
    nn = torch.nn

    class Quantize(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, levels):
            ctx.levels = levels
            return torch.round(input * levels) / levels

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.clamp(-1, 1), None

    class GradientReversal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.neg() * ctx.alpha, None

    class LogSumExp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            m = x.max(dim=1, keepdim=True).values
            y = m.squeeze(1) + (x - m).exp().sum(1).log()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g.unsqueeze(1) * (x - y.unsqueeze(1)).exp()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.head, self.domain = nn.Linear(12, 8), nn.Linear(8, 3), nn.LazyLinear(2)

        def forward(self, x, alpha):
            h = Quantize.apply(torch.sigmoid(self.features(x)), 16)
            return self.head(h), self.domain(GradientReversal.apply(h, alpha))

    model = Net()
    model(torch.zeros(2, 12), 0.0)
    same(torch, model)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    x, y = torch.from_numpy(DATA), torch.tensor(LABELS)
    out = []
    for i in range(5):
        logits, domain = model(x, 0.1 * i)
        nll = LogSumExp.apply(logits) - logits.gather(1, y[:, None]).squeeze(1)
        loss = nll.mean() + nn.functional.cross_entropy(domain, (x[:, 0] > 0).long())
        (g,) = torch.autograd.grad(nll.sum(), model.head.bias, create_graph=True)
        loss = loss + 0.01 * g.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out += [loss.item(), g.norm().item()]
    return out


ALL = [
    hooks,
    norms_of_weights,
    hessian_vector_products,
    neural_ode,
    burgers,
    mixed_functions,
]
