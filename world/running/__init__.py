"""How actors run: one at a time, in virtual time, in an order that one seed fixes."""
