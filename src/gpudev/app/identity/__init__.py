"""Identity: logins, API keys, and who a request comes from."""
