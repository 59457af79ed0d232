# For OpenTofu alone. OpenTofu takes versions.tofu instead of this file; a program that reads this one would write a
# state that OpenTofu cannot read again, and no version of it can satisfy this.
terraform {
  required_version = "< 0.0.1"
}
