"""Directory trees of users: copy, list and remove them, whatever is in them.

A user decides how deep folders nest, what is in their names, and what is a link. So a tree is handled
through directory descriptors, without recursion, at any depth, and no symbolic link is followed.
"""
