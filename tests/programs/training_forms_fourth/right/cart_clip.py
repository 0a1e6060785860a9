import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(1)
np.random.seed(1)


class Agent(nn.Module):
    def __init__(self, obs_dim=6, n_actions=4):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, n_actions))

    def get_action_and_value(self, x, action=None):
        dist = Categorical(logits=self.actor(x))
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action), dist.entropy(), self.critic(x).squeeze(-1)


table = torch.randn(6, 4)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
clip_coef, vf_coef, ent_coef = 0.2, 0.5, 0.01
batch_size, minibatch_size, update_epochs = 256, 64, 6

for update in range(1, 16):
    b_obs = torch.randn(batch_size, 6)
    with torch.no_grad():
        b_actions, b_logprobs, _, b_values = agent.get_action_and_value(b_obs)
    b_returns = (b_obs @ table).gather(1, b_actions[:, None]).squeeze(1) + 0.1 * torch.randn(batch_size)
    b_advantages = b_returns - b_values

    b_inds = np.arange(batch_size)
    clipfracs = []
    for epoch in range(update_epochs):
        np.random.shuffle(b_inds)
        for start in range(0, batch_size, minibatch_size):
            mb = b_inds[start:start + minibatch_size]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            with torch.no_grad():
                clipfracs.append(((ratio - 1.0).abs() > clip_coef).float().mean().item())

            adv = b_advantages[mb]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg_loss1 = -adv * ratio
            pg_loss2 = -adv * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)
            pg_loss = torch.max(pg_loss1, pg_loss2).mean()
            v_loss = 0.5 * ((newvalue - b_returns[mb]) ** 2).mean()
            loss = pg_loss + vf_coef * v_loss - ent_coef * entropy.mean()

            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    if update % 3 == 0:
        print(f"update {update} return {b_returns.mean():.3f} v_loss {v_loss.item():.3f} "
              f"clipfrac {np.mean(clipfracs):.3f}")
