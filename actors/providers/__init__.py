"""Who answers a prompt: the target's catalogue, a command, or a model behind LiteLLM."""
