"""More training scripts as people write them for PyTorch; each takes the module that it calls torch."""

# ruff: noqa: B007, B905  (as such scripts have it)

import copy
import math
import random
from collections import OrderedDict, deque

import numpy as np
from scripts import DATA, IMAGES, LABELS, TOKENS, Noise, same

TEXT = "the quick brown fox jumps over the lazy dog. the dog sleeps; the fox runs away."


def dcgan(torch):
    nn = torch.nn
    noise = Noise(torch)
    nz, ngf, ndf = 4, 4, 4

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.main = nn.Sequential(
                nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
                nn.BatchNorm2d(ngf * 2),
                nn.ReLU(True),
                nn.ConvTranspose2d(ngf * 2, 1, 4, 2, 1, bias=False),
                nn.Tanh(),
            )

        def forward(self, input):
            return self.main(input)

    class Discriminator(nn.Module):
        def __init__(self):
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
                nn.LeakyReLU(0.2, inplace=True),
                nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
                nn.InstanceNorm2d(ndf * 2, affine=True),
                nn.LeakyReLU(0.2, inplace=True),
                nn.Conv2d(ndf * 2, 1, 2, 1, 0, bias=False),
                nn.Sigmoid(),
            )

        def forward(self, input):
            return self.main(input).view(-1, 1).squeeze(1)

    def weights_init(m):
        classname = m.__class__.__name__
        if classname.find("BatchNorm") != -1:
            nn.init.constant_(m.weight.data, 1.0)
            nn.init.constant_(m.bias.data, 0)

    device = torch.device("cpu")
    netG, netD = same(torch, Generator()).to(device), same(torch, Discriminator(), 1).to(device)
    netG.apply(weights_init)
    criterion = nn.BCELoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
    real_label, fake_label, out = 1.0, 0.0, []
    dataloader = torch.utils.data.DataLoader(torch.from_numpy(IMAGES), batch_size=8)
    for epoch in range(2):
        for i, data in enumerate(dataloader, 0):
            netD.zero_grad()
            real_cpu = data.to(device)
            b_size = real_cpu.size(0)
            label = torch.full((b_size,), real_label, dtype=torch.float, device=device)
            output = netD(real_cpu).view(-1)
            errD_real = criterion(output, label)
            errD_real.backward()
            D_x = output.mean().item()
            fake = netG(noise(b_size, nz, 1, 1))
            label.fill_(fake_label)
            output = netD(fake.detach()).view(-1)
            errD_fake = criterion(output, label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()
            netG.zero_grad()
            label.fill_(real_label)
            output = netD(fake).view(-1)
            errG = criterion(output, label)
            errG.backward()
            optimizerG.step()
            out += [errD.item(), errG.item(), D_x]
    return out


def char_rnn(torch):
    nn = torch.nn
    chars = sorted(set(TEXT))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in TEXT], dtype=torch.long)

    class CharRNN(nn.Module):
        def __init__(self, vocab, hidden, n_layers=2):
            super().__init__()
            self.n_layers, self.hidden_size = n_layers, hidden
            self.encoder = nn.Embedding(vocab, hidden)
            self.rnn = nn.LSTM(hidden, hidden, n_layers, batch_first=True)
            self.decoder = nn.Linear(hidden, vocab)

        def forward(self, x, hidden):
            out, hidden = self.rnn(self.encoder(x), hidden)
            return self.decoder(out.contiguous().view(-1, self.hidden_size)), hidden

        def init_hidden(self, batch_size):
            weight = next(self.parameters()).data
            return (
                weight.new_zeros(self.n_layers, batch_size, self.hidden_size),
                weight.new_zeros(self.n_layers, batch_size, self.hidden_size),
            )

    model = same(torch, CharRNN(len(chars), 12))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    criterion = nn.CrossEntropyLoss()
    batch, seq, out = 3, 8, []
    n = (len(data) - 1) // (batch * seq) * seq
    xs, ys = data[: batch * n].view(batch, -1), data[1 : batch * n + 1].view(batch, -1)
    for epoch in range(3):
        h = model.init_hidden(batch)
        for i in range(0, n, seq):
            h = tuple(each.data for each in h)
            model.zero_grad()
            logits, h = model(xs[:, i : i + seq], h)
            loss = criterion(logits, ys[:, i : i + seq].reshape(batch * seq))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimizer.step()
        scheduler.step(loss)
        out += [loss.item(), math.exp(loss.item()), optimizer.param_groups[0]["lr"]]
    model.eval()
    with torch.no_grad():
        h, c, text = model.init_hidden(1), data[:1].unsqueeze(0), []
        for _ in range(6):
            logits, h = model(c, h)
            p = nn.functional.softmax(logits, dim=1).data
            c = p.topk(1)[1].view(1, 1)
            text.append(c.item())
    return out + text


def seq2seq(torch):
    nn, F = torch.nn, torch.nn.functional
    random.seed(0)

    class Encoder(nn.Module):
        def __init__(self, vocab, emb, hid):
            super().__init__()
            self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
            self.rnn = nn.GRU(emb, hid, bidirectional=True)
            self.fc = nn.Linear(hid * 2, hid)

        def forward(self, src, src_len):
            packed = nn.utils.rnn.pack_padded_sequence(self.embedding(src), src_len, enforce_sorted=False)
            outputs, hidden = self.rnn(packed)
            outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs)
            hidden = torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)))
            return outputs, hidden

    class Attention(nn.Module):
        def __init__(self, hid):
            super().__init__()
            self.attn = nn.Linear(hid * 3, hid)
            self.v = nn.Parameter(torch.rand(hid))

        def forward(self, hidden, enc, mask):
            hidden = hidden.unsqueeze(1).repeat(1, enc.shape[0], 1)
            energy = torch.tanh(self.attn(torch.cat((hidden, enc.permute(1, 0, 2)), dim=2)))
            attention = torch.bmm(self.v.repeat(enc.shape[1], 1).unsqueeze(1), energy.transpose(1, 2)).squeeze(1)
            return F.softmax(attention.masked_fill(mask == 0, -1e10), dim=1)

    class Decoder(nn.Module):
        def __init__(self, vocab, emb, hid):
            super().__init__()
            self.embedding = nn.Embedding(vocab, emb)
            self.attention = Attention(hid)
            self.rnn = nn.GRUCell(hid * 2 + emb, hid)
            self.out = nn.Linear(hid * 3 + emb, vocab)

        def forward(self, input, hidden, enc, mask):
            embedded = self.embedding(input)
            a = self.attention(hidden, enc, mask)
            weighted = torch.bmm(a.unsqueeze(1), enc.permute(1, 0, 2)).squeeze(1)
            hidden = self.rnn(torch.cat((embedded, weighted), dim=1), hidden)
            return self.out(torch.cat((hidden, weighted, embedded), dim=-1)), hidden

    enc, dec = same(torch, Encoder(20, 5, 6)), same(torch, Decoder(20, 5, 6), 1)
    params = list(enc.parameters()) + list(dec.parameters())
    optimizer, criterion = torch.optim.Adam(params, lr=1e-2), nn.CrossEntropyLoss(ignore_index=0)
    src = torch.from_numpy(TOKENS.T.copy()).long()
    lengths, out = (src != 0).sum(0), []
    for step in range(4):
        optimizer.zero_grad()
        outputs, hidden = enc(src, lengths)
        mask = (src != 0).permute(1, 0)
        input, logits = src[0], []
        for t in range(1, src.shape[0]):
            prediction, hidden = dec(input, hidden, outputs, mask)
            logits.append(prediction)
            teacher_force = random.random() < 0.5
            input = src[t] if teacher_force else prediction.argmax(1)
        loss = criterion(torch.stack(logits).view(-1, 20), src[1:].reshape(-1))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        out += [loss.item(), float(norm)]
    return out


def dqn(torch):
    nn, F, optim = torch.nn, torch.nn.functional, torch.optim
    random.seed(1)
    world = np.random.default_rng(5)

    class DQN(nn.Module):
        def __init__(self, n_observations, n_actions):
            super().__init__()
            self.layer1 = nn.Linear(n_observations, 16)
            self.layer2 = nn.Linear(16, 16)
            self.layer3 = nn.Linear(16, n_actions)

        def forward(self, x):
            x = F.relu(self.layer1(x))
            x = F.relu(self.layer2(x))
            return self.layer3(x)

    policy_net, target_net = same(torch, DQN(4, 2)), DQN(4, 2)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, TAU, GAMMA, out = deque(maxlen=100), 0.05, 0.9, []

    def optimize_model():
        transitions = random.sample(memory, 8)
        states, actions, next_states, rewards = zip(*transitions)
        non_final_mask = torch.tensor(tuple(s is not None for s in next_states), dtype=torch.bool)
        non_final_next_states = torch.cat([s for s in next_states if s is not None])
        state_batch, action_batch, reward_batch = torch.cat(states), torch.cat(actions), torch.cat(rewards)
        state_action_values = policy_net(state_batch).gather(1, action_batch)
        next_state_values = torch.zeros(8)
        with torch.no_grad():
            next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
        expected = (next_state_values * GAMMA) + reward_batch
        loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        return loss.item()

    state = torch.tensor(world.normal(size=4), dtype=torch.float32).unsqueeze(0)
    for t in range(30):
        if random.random() > 0.3:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[random.randrange(2)]], dtype=torch.long)
        reward = torch.tensor([float(np.sin(t) + action.item())])
        done = t % 7 == 6
        next_state = None if done else torch.tensor(world.normal(size=4), dtype=torch.float32).unsqueeze(0)
        memory.append((state, action, next_state, reward))
        state = torch.tensor(world.normal(size=4), dtype=torch.float32).unsqueeze(0) if done else next_state
        if len(memory) >= 8:
            out.append(optimize_model())
            target_sd, policy_sd = target_net.state_dict(), policy_net.state_dict()
            for key in policy_sd:
                target_sd[key] = policy_sd[key] * TAU + target_sd[key] * (1 - TAU)
            target_net.load_state_dict(target_sd)
    return out


def siamese(torch):
    nn, F = torch.nn, torch.nn.functional

    class ContrastiveLoss(nn.Module):
        def __init__(self, margin=2.0):
            super().__init__()
            self.margin = margin

        def forward(self, output1, output2, label):
            d = F.pairwise_distance(output1, output2, keepdim=True)
            return torch.mean(
                (1 - label) * torch.pow(d, 2) + label * torch.pow(torch.clamp(self.margin - d, min=0.0), 2)
            )

    net = same(torch, nn.Sequential(
        nn.ReflectionPad2d(1), nn.Conv2d(1, 4, kernel_size=3), nn.ReLU(inplace=True), nn.BatchNorm2d(4),
        nn.Dropout2d(p=0.0), nn.Flatten(), nn.Linear(4 * 8 * 8, 8), nn.ReLU(inplace=True), nn.Linear(8, 3),
    ))  # fmt: skip
    criterion, triplet = ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0)
    optimizer = torch.optim.NAdam(net.parameters(), lr=2e-3)
    x, y = torch.from_numpy(IMAGES), torch.tensor(LABELS[:16])
    out = []
    for epoch in range(4):
        i, j = torch.arange(0, 16, 2), torch.arange(1, 16, 2)
        label = (y[i] != y[j]).float().unsqueeze(1)
        optimizer.zero_grad()
        a, b = net(x[i]), net(x[j])
        z = F.normalize(torch.cat([a, b]), dim=1)
        sim = (z @ z.T / 0.5).masked_fill(torch.eye(16, dtype=torch.bool), float("-inf"))
        info_nce = F.cross_entropy(sim, torch.cat([torch.arange(8, 16), torch.arange(8)]))
        loss = criterion(a, b, label) + info_nce + triplet(a, b, b.roll(1, 0))
        loss.backward()
        optimizer.step()
        out += [loss.item(), info_nce.item(), F.cosine_similarity(a, b).mean().item()]
    return out


def accumulation_and_resume(torch):
    nn = torch.nn

    def build():
        model = same(torch, nn.Sequential(OrderedDict([
            ("fc1", nn.Linear(12, 16)), ("act", nn.GELU()), ("norm", nn.LayerNorm(16)), ("fc2", nn.Linear(16, 3)),
        ])))  # fmt: skip
        optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2, weight_decay=1e-3)
        warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=3)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
        return model, optimizer, torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[3])

    model, optimizer, scheduler = build()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    x, y = torch.from_numpy(DATA), torch.tensor(LABELS)
    accumulation_steps, out = 4, []
    ema = copy.deepcopy(model)
    for epoch in range(6):
        if epoch == 3:
            checkpoint = {
                "model": copy.deepcopy(model.state_dict()), "optimizer": copy.deepcopy(optimizer.state_dict()),
                "scheduler": scheduler.state_dict(),
            }  # fmt: skip
            model, optimizer, scheduler = build()
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            scheduler.load_state_dict(checkpoint["scheduler"])
        optimizer.zero_grad()
        running = 0.0
        for i, (xb, yb) in enumerate(zip(x.chunk(8), y.chunk(8))):
            loss = criterion(model(xb), yb) / accumulation_steps
            loss.backward()
            running += loss.item()
            if (i + 1) % accumulation_steps == 0:
                norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), model.parameters()):
                p.mul_(0.9).add_(q.data, alpha=0.1)
        out += [running, norm.item(), scheduler.get_last_lr()[0], ema(x).std().item()]
    return out


def speech(torch):
    nn, F = torch.nn, torch.nn.functional

    class Acoustic(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.BatchNorm1d(8), nn.Hardtanh(0, 20, True))
            self.rnn = nn.GRU(8, 6, batch_first=True, bidirectional=True)
            self.fc = nn.Linear(12, 5)

        def forward(self, x):
            h = self.conv(x).transpose(1, 2)
            h, _ = self.rnn(h)
            return F.log_softmax(self.fc(h), dim=-1).transpose(0, 1)

    model = same(torch, Acoustic())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=2)
    x = torch.from_numpy(np.random.default_rng(6).normal(size=(3, 4, 10)).astype("float32"))
    targets, lengths = torch.tensor([1, 2, 3, 3, 4, 1]), torch.tensor([3, 1, 2])
    criterion, out = nn.CTCLoss(blank=0, zero_infinity=True), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = criterion(model(x), targets, torch.full((3,), 10, dtype=torch.long), lengths)
        loss.backward()
        optimizer.step()
        scheduler.step()
        out += [loss.item(), scheduler.get_last_lr()[0]]
    best = model(x).argmax(dim=2).T
    decoded = [[int(k) for k in torch.unique_consecutive(row) if k != 0] for row in best]
    return out + [len(d) for d in decoded] + [k for d in decoded for k in d]


def translation(torch):
    nn, F = torch.nn, torch.nn.functional

    class PositionalEncoding(nn.Module):
        def __init__(self, d_model, max_len=20):
            super().__init__()
            position = torch.arange(max_len).unsqueeze(1)
            div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
            pe = torch.zeros(max_len, 1, d_model)
            pe[:, 0, 0::2] = torch.sin(position * div_term)
            pe[:, 0, 1::2] = torch.cos(position * div_term)
            self.register_buffer("pe", pe)

        def forward(self, x):
            return x + self.pe[: x.size(0)]

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position = nn.Embedding(20, 8), PositionalEncoding(8)
            self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
            self.out = nn.Linear(8, 20)

        def forward(self, src, tgt):
            mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(0))
            padding = (src == 0).transpose(0, 1)
            src, tgt = (self.position(self.embed(v) * math.sqrt(8)) for v in (src, tgt))
            h = self.transformer(
                src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding
            )
            return self.out(h)

    model = same(torch, Translator())
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    noam = lambda step: 8**-0.5 * min(max(step, 1) ** -0.5, max(step, 1) * 10**-1.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=noam)
    src = torch.from_numpy(TOKENS.T.copy()).long()
    tgt, out = src.flip(0), []
    for _ in range(4):
        logits = model(src, tgt[:-1])
        loss = F.cross_entropy(logits.reshape(-1, 20), tgt[1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        out.append(loss.item())
    return out


ALL = [
    dcgan,
    char_rnn,
    seq2seq,
    dqn,
    siamese,
    accumulation_and_resume,
    speech,
    translation,
]
