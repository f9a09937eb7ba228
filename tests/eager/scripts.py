"""Training scripts as people write them for PyTorch. Each takes the module that it calls torch, and returns numbers."""

# ruff: noqa: B007, B905, RUF059  (names that nothing reads, as such scripts have them)

import copy
import math

import numpy as np

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(64, 12)).astype("float32")
IMAGES = RNG.random((16, 1, 8, 8)).astype("float32")
TOKENS = RNG.integers(1, 20, (8, 7))
TOKENS[0, 4:] = 0
TOKENS[3, 2:] = 0
LABELS = RNG.integers(0, 3, 64)
NOISE = RNG.normal(size=(2000, 16)).astype("float32")


class Noise:
    """Normal numbers, the same ones for both."""

    def __init__(self, torch):
        self.torch, self.used = torch, 0

    def __call__(self, *shape):
        start, self.used = self.used, self.used + math.prod(shape)
        return self.torch.from_numpy(NOISE.ravel()[start : self.used].reshape(shape).copy())


def same(torch, model, seed=0):
    """Give the model the same weights in both."""
    rng = np.random.default_rng(seed)
    for p in model.parameters():
        with torch.no_grad():
            p.copy_(torch.tensor((0.3 * rng.normal(size=tuple(p.shape))).astype("float32")))
    return model


def vae(torch):
    nn, F, optim = torch.nn, torch.nn.functional, torch.optim
    noise = Noise(torch)

    class VAE(nn.Module):
        def __init__(self, latent_dim=3):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 16), nn.ReLU(inplace=True))
            self.fc_mu, self.fc_logvar = nn.Linear(16, latent_dim), nn.Linear(16, latent_dim)
            self.decoder = nn.Sequential(nn.Linear(latent_dim, 16), nn.ELU(), nn.Linear(16, 12), nn.Sigmoid())

        def reparameterize(self, mu, logvar):
            std = torch.exp(0.5 * logvar)
            eps = noise(*std.shape)
            return mu + eps * std

        def forward(self, x):
            h = self.encoder(x)
            mu, logvar = self.fc_mu(h), self.fc_logvar(h)
            z = self.reparameterize(mu, logvar)
            return self.decoder(z), mu, logvar

    def loss_function(recon_x, x, mu, logvar):
        BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
        KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return BCE + KLD

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = same(torch, VAE()).to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    dataset = torch.utils.data.TensorDataset(torch.sigmoid(torch.from_numpy(DATA)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=False)
    out = []
    for epoch in range(3):
        model.train()
        total = 0.0
        for i, (data,) in enumerate(loader):
            data = data.to(device)
            optimizer.zero_grad()
            recon, mu, logvar = model(data)
            loss = loss_function(recon, data, mu, logvar)
            loss.backward()
            total += loss.item()
            optimizer.step()
        out.append(total / len(loader.dataset))
    model.eval()
    with torch.no_grad():
        sample = model.decoder(noise(4, 3)).cpu()
    return out + [sample.mean().item()]


def gru_classifier(torch):
    nn, F = torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(20, 6, padding_idx=0)
            self.gru = nn.GRU(6, 8, num_layers=2, batch_first=True, bidirectional=True, dropout=0.0)
            self.dropout = nn.Dropout(0.0)
            self.fc = nn.Linear(16, 3)

        def forward(self, text):
            embedded = self.dropout(self.embedding(text))
            output, hidden = self.gru(embedded)
            hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
            return self.fc(hidden)

    model = same(torch, Net())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    x, y = torch.from_numpy(TOKENS).long(), torch.tensor(LABELS[:8], dtype=torch.long)
    out = []
    for epoch in range(6):
        optimizer.zero_grad(set_to_none=True)
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        acc = (logits.argmax(dim=1) == y).float().mean()
        out += [loss.item(), acc.item(), scheduler.get_last_lr()[0]]
    preds = torch.max(F.softmax(model(x), dim=-1), 1)[1]
    return out + preds.tolist() + [sum(p.numel() for p in model.parameters() if p.requires_grad)]


def resnet(torch):
    nn, F = torch.nn, torch.nn.functional

    class BasicBlock(nn.Module):
        expansion = 1

        def __init__(self, cin, cout, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(cin, cout, kernel_size=3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(cout)
            self.conv2 = nn.Conv2d(cout, cout, kernel_size=3, stride=1, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(cout)
            self.shortcut = nn.Sequential()
            if stride != 1 or cin != cout:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(cin, cout, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(cout)
                )

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.shortcut(x)
            return F.relu(out)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(1, 4, 3, padding=1)
            self.layers = nn.ModuleList([BasicBlock(4, 4), BasicBlock(4, 8, 2)])
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(8, 3)
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)

        def forward(self, x):
            x = self.stem(x)
            for layer in self.layers:
                x = layer(x)
            x = self.avgpool(x)
            x = torch.flatten(x, 1)
            return self.fc(x)

    model = same(torch, Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    x, y = torch.from_numpy(IMAGES), torch.from_numpy(LABELS[:16])
    out = []
    for _ in range(5):
        model.train()
        loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        out.append(loss.item())
    model.eval()
    with torch.inference_mode():
        _, predicted = model(x).max(1)
        correct = predicted.eq(y).sum().item()
    sd = model.state_dict()
    return out + [
        correct,
        sd["layers.1.bn1.running_mean"].sum().item(),
        int(sd["layers.0.bn1.num_batches_tracked"]),
        optimizer.param_groups[0]["lr"],
    ]


def wgan_gp(torch):
    nn, autograd = torch.nn, torch.autograd
    noise = Noise(torch)
    G = same(torch, nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(True), nn.Linear(8, 12), nn.Tanh()), 1)
    D = same(torch, nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1)), 2)
    optG = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optD = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
    real_data = torch.from_numpy(DATA[:16])

    def gradient_penalty(real, fake):
        alpha = noise(real.size(0), 1).sigmoid().expand_as(real)
        interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        d = D(interpolates)
        gradients = autograd.grad(
            outputs=d,
            inputs=interpolates,
            grad_outputs=torch.ones(d.size(), device=real.device),
            create_graph=True,
            retain_graph=True,
            only_inputs=True,
        )[0]
        gradients = gradients.view(gradients.size(0), -1)
        return ((gradients.norm(2, dim=1) - 1) ** 2).mean()

    out = []
    for it in range(3):
        for p in D.parameters():
            p.requires_grad = True
        for _ in range(2):
            D.zero_grad()
            fake = G(noise(16, 4)).detach()
            loss = D(fake).mean() - D(real_data).mean() + 10.0 * gradient_penalty(real_data.data, fake.data)
            loss.backward()
            optD.step()
            out.append(loss.item())
        for p in D.parameters():
            p.requires_grad = False
        G.zero_grad()
        g = -D(G(noise(16, 4))).mean()
        g.backward()
        optG.step()
        out.append(g.item())
    return out


def policy_gradient(torch):
    nn = torch.nn
    policy = same(torch, nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(dim=-1)))
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-2)
    rng = np.random.default_rng(5)
    out = []
    for episode in range(3):
        log_probs, rewards = [], []
        state = rng.normal(size=4)
        for t in range(6):
            probs = policy(torch.from_numpy(state).float().unsqueeze(0))
            m = torch.distributions.Categorical(probs)
            action = torch.tensor([int(rng.integers(2))])
            log_probs.append(m.log_prob(action))
            rewards.append(float(rng.normal()))
            state = rng.normal(size=4)
        R, returns = 0, []
        for r in rewards[::-1]:
            R = r + 0.99 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        policy_loss = []
        for lp, R in zip(log_probs, returns):
            policy_loss.append(-lp * R)
        optimizer.zero_grad()
        loss = torch.cat(policy_loss).sum() - 0.01 * m.entropy().mean()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def lr_finder(torch):
    nn = torch.nn
    model = same(torch, nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 3)))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    state = copy.deepcopy(model.state_dict())
    opt_state = copy.deepcopy(optimizer.state_dict())
    lr_lambda = lambda step: math.exp(step * math.log(1e2) / 10)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda)
    x, y = torch.from_numpy(DATA), torch.from_numpy(LABELS)
    losses, lrs = [], []
    for i in range(10):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        lrs.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
        losses.append(loss.item())
    model.load_state_dict(state)
    optimizer.load_state_dict(opt_state)
    for g in optimizer.param_groups:
        g["lr"] = 0.01
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return losses + lrs + [loss.item(), criterion(model(x), y).item()]


def weight_tying(torch):
    nn, F = torch.nn, torch.nn.functional

    class LM(nn.Module):
        def __init__(self, vocab=20, width=8):
            super().__init__()
            self.encoder = nn.Embedding(vocab, width)
            self.rnn = nn.LSTM(width, width, batch_first=True)
            self.decoder = nn.Linear(width, vocab)
            self.decoder.weight = self.encoder.weight
            self.init_weights()

        def init_weights(self):
            nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
            nn.init.zeros_(self.decoder.bias)

        def forward(self, x, hidden=None):
            out, hidden = self.rnn(self.encoder(x), hidden)
            return self.decoder(out), hidden

        def init_hidden(self, bsz):
            weight = next(self.parameters())
            return (weight.new_zeros(1, bsz, 8), weight.new_zeros(1, bsz, 8))

    def repackage_hidden(h):
        if isinstance(h, torch.Tensor):
            return h.detach()
        return tuple(repackage_hidden(v) for v in h)

    model = same(torch, LM())
    assert len(list(model.parameters())) == 6
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    hidden = model.init_hidden(8)
    x = torch.tensor(TOKENS)
    out = []
    for i in range(3):
        hidden = repackage_hidden(hidden)
        logits, hidden = model(x[:, i : i + 3], hidden)
        loss = F.cross_entropy(logits.reshape(-1, 20), x[:, i + 1 : i + 4].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out += [loss.item(), math.exp(loss.item())]
    assert model.decoder.weight is model.encoder.weight
    return out + [model.decoder.weight.abs().sum().item()]


def freezing(torch):
    nn, F = torch.nn, torch.nn.functional
    backbone = same(torch, nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()), 1)
    head = same(torch, nn.Linear(8, 3), 2)
    for param in backbone.parameters():
        param.requires_grad = False
    backbone[2].weight.requires_grad_(True)
    model = nn.Sequential(backbone, head)
    trainable = [p for p in model.parameters() if p.requires_grad]
    names = [n for n, p in model.named_parameters() if p.requires_grad]
    optimizer = torch.optim.Adam([{"params": [backbone[2].weight], "lr": 1e-4}, {"params": head.parameters()}], lr=1e-2)
    x, y = torch.from_numpy(DATA), torch.from_numpy(LABELS)
    features = []
    handle = backbone.register_forward_hook(lambda m, i, o: features.append(o.detach().clone()))
    out = []
    for _ in range(4):
        loss = F.nll_loss(F.log_softmax(model(x), dim=1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    handle.remove()
    assert backbone[0].weight.grad is None
    with torch.no_grad():
        model(x)
    return out + [len(trainable), len(names), len(features), features[-1].sum().item()]


def custom_function(torch):
    class MyReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[input < 0] = 0
            return grad_input

    class STE(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            ctx.mark_non_differentiable()
            return torch.round(x * scale) / scale

        @staticmethod
        def backward(ctx, g):
            return g, None

    dtype, device = torch.float, torch.device("cpu")
    x = torch.tensor(DATA, device=device, dtype=dtype)
    w1 = torch.tensor(0.1 * NOISE[:12, :8], device=device, dtype=dtype, requires_grad=True)
    w2 = torch.tensor(0.1 * NOISE[20:28, :1], device=device, dtype=dtype, requires_grad=True)
    y = torch.tensor(DATA[:, :1] ** 2)
    out = []
    for t in range(5):
        relu = MyReLU.apply
        y_pred = STE.apply(relu(x.mm(w1)).mm(w2), 64.0)
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            w1 -= 1e-3 * w1.grad
            w2 -= 1e-3 * w2.grad
            w1.grad.zero_()
            w2.grad.zero_()
        out.append(loss.item())
    a = torch.randn(4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(MyReLU.apply, (a,), eps=1e-6, atol=1e-4)
    return out


def pinn(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 10), nn.Tanh(), nn.Linear(10, 1))

        def forward(self, x, t):
            return self.net(torch.cat([x, t], dim=1))

    model = same(torch, Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    lb = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
    x = torch.linspace(-1, 1, 20).view(-1, 1).requires_grad_(True)
    t = torch.full_like(x, 0.3).requires_grad_()

    def residual():
        u = model(x, t)
        u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
        u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x), create_graph=True)[0]
        f = u_t + u * u_x - 0.01 / math.pi * u_xx
        bc = model(x, torch.zeros_like(t)) + torch.sin(math.pi * x)
        return (f**2).mean() + torch.mean(bc**2)

    out = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = residual()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        out.append(loss.item())

    def closure():
        lb.zero_grad()
        l = residual()
        l.backward()
        return l

    lb.step(closure)
    return out + [residual().item()]


def transformer(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, d, h):
            super().__init__()
            self.attn = nn.MultiheadAttention(d, h, dropout=0.0, batch_first=True)
            self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x, mask):
            a, _ = self.attn(self.ln1(x), self.ln1(x), self.ln1(x), attn_mask=mask, need_weights=False)
            x = x + a
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self, vocab=20, d=8, T=6):
            super().__init__()
            self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(1, T, d))
            self.blocks = nn.ModuleList(Block(d, 2) for _ in range(2))
            self.head = nn.Linear(d, vocab, bias=False)
            self.register_buffer("mask", torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1))

        def forward(self, idx, targets=None):
            B, T = idx.shape
            x = self.tok(idx) + self.pos[:, :T]
            for b in self.blocks:
                x = b(x, self.mask[:T, :T])
            logits = self.head(x)
            loss = None if targets is None else F.cross_entropy(logits.view(B * T, -1), targets.reshape(B * T))
            return logits, loss

    model = same(torch, GPT())
    decay = [p for p in model.parameters() if p.dim() >= 2]
    nodecay = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95)
    )
    idx = torch.tensor(TOKENS)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=5)
    out = []
    for _ in range(4):
        logits, loss = model(idx[:, :-1], idx[:, 1:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        out += [loss.item(), float(norm)]
    model.eval()
    with torch.no_grad():
        ctx = idx[:1, :2]
        for _ in range(3):
            logits, _ = model(ctx)
            probs = F.softmax(logits[:, -1, :] / 0.8, dim=-1)
            v, ix = torch.topk(probs, 3)
            nxt = ix[:, :1]
            ctx = torch.cat((ctx, nxt), dim=1)
    return out + ctx[0].tolist()


ALL = [
    vae,
    gru_classifier,
    resnet,
    wgan_gp,
    policy_gradient,
    lr_finder,
    weight_tying,
    freezing,
    custom_function,
    pinn,
    transformer,
]
