-- Who a user is by the word of AWS. A user without these logs in some other way, and nobody else may take
-- the username.
ALTER TABLE api_users
    ADD COLUMN aws_account text,
    ADD COLUMN aws_role    text,
    ADD COLUMN aws_name    text,
    ADD COLUMN aws_arn     text,
    ADD CONSTRAINT api_users_identity CHECK (
        num_nulls(aws_account, aws_role, aws_name, aws_arn) IN (0, 4));
COMMENT ON COLUMN api_users.aws_name IS 'As AWS spells it; the username is made from it';
