"""Amazon Web Services: who somebody is, by AWS' own word."""
