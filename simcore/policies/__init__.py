"""What a run can be made of: a folder for each role, a file for each policy.

``catalogue`` finds them; nothing else names a policy.
"""
