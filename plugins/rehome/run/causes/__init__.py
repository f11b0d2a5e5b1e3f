"""How tasks say what ended or refused their run."""
