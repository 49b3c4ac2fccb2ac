"""What servers share: refusals, rates, addresses, and an answer whatever happens."""
