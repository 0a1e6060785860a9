"""Point masses on springs with quadratic drag."""
import torch


class SpringSim:
    def __init__(self, bodies, dt=0.05, stiffness=4.0, drag=0.3):
        self.dt, self.stiffness, self.drag = dt, stiffness, drag
        self.pos = torch.zeros(bodies, 2)
        self.vel = torch.zeros(bodies, 2)

    def observe(self):
        return torch.cat([self.pos, self.vel], dim=-1)

    def step(self, force):
        speed = torch.abs(self.vel)
        resist = self.drag * speed * torch.sign(self.vel.detach()) * speed
        acc = force - self.stiffness * self.pos - resist
        self.vel = self.vel + acc * self.dt
        self.pos += self.vel * self.dt
        return self.observe()
