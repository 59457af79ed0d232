"""Amazon Web Services: identities by STS, disks on EBS, listings in S3, Auto Scaling groups."""
