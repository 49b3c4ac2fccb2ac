"""A client of servers, and statistics of people whose columns lie on several of them."""
