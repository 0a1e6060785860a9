import copy
import random
from collections import deque, namedtuple

import torch
from torch import nn
import torch.nn.functional as F

Step = namedtuple("Step", "state action reward following done")


class Hover:
    def reset(self):
        self.height, self.speed, self.clock = random.uniform(-1, 1), 0.0, 0
        return self.observe()

    def observe(self):
        return torch.tensor([self.height, self.speed])

    def step(self, thrust):
        self.speed += (0.2, -0.2)[thrust] - 0.1 * self.speed
        self.height += 0.3 * self.speed
        self.clock += 1
        crashed = abs(self.height) > 2
        reward = 1 - abs(self.height) if not crashed else -5.0
        return self.observe(), reward, crashed, self.clock >= 25


def learn(online, target, optimizer, memory, gamma=0.9, batch=32):
    rows = Step(*zip(*random.sample(memory, batch)))
    states, following = torch.stack(rows.state), torch.stack(rows.following)
    actions, rewards = torch.tensor(rows.action), torch.tensor(rows.reward)
    alive = 1 - torch.tensor(rows.done).float()
    with torch.no_grad():
        best = online(following).argmax(1, keepdim=True)
        goal = rewards + gamma * alive * target(following).gather(1, best).squeeze(1)
    values = online(states).gather(1, actions[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(values, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(episodes=24, copy_every=40):
    random.seed(4)
    torch.manual_seed(4)
    env = Hover()
    online = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-3)
    memory, updates, scores = deque(maxlen=600), 0, []
    for episode in range(episodes):
        state, score, over = env.reset(), 0.0, False
        epsilon = max(0.05, 1 - episode / 12)
        while not over:
            if random.random() < epsilon:
                action = random.randrange(2)
            else:
                with torch.no_grad():
                    action = online(state).argmax().item()
            following, reward, done, timeout = env.step(action)
            memory.append(Step(state, action, reward, following, done))
            state, score, over = following, score + reward, done or timeout
            if len(memory) >= 64:
                loss = learn(online, target, optimizer, memory)
                updates += 1
                if updates % copy_every == 0:
                    target.load_state_dict(online.state_dict())
        scores.append(score)
        if episode % 6 == 5:
            print(f"episode {episode + 1} loss {loss:.4f} score {sum(scores[-6:]) / 6:.3f}")


if __name__ == "__main__":
    main()
