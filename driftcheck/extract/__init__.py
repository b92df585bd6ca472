"""Captures the hidden states of decoder layers while a target model reads prompts, for training draft models."""
