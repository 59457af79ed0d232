-- The roles and the database of a new server. Passwords come from the environment and are seen by nobody.
\set ON_ERROR_STOP on
\getenv gpudev_password POSTGRES_PASSWORD
\getenv replication_password REPLICATION_PASSWORD
-- Migrations connect as gpudev, and create the role that the service connects as.
CREATE ROLE gpudev LOGIN CREATEROLE PASSWORD :'gpudev_password';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replication_password';
CREATE DATABASE gpudev OWNER gpudev;
REVOKE ALL ON DATABASE gpudev FROM PUBLIC;
