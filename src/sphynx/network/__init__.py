"""Designs as torch modules: Sphynx networks, the micro-search network, ResNet18 and VGG11; trained ones by name."""
