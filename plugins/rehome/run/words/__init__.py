"""Words for why tasks end their runs, and for what they ask people: a module for each topic."""
