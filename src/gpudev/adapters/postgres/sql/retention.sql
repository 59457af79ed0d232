-- Keys that ended long ago. A user's last key stays: it tells when they were here.
-- name: delete_keys
WITH deleted AS (
    DELETE FROM api_keys WHERE key_id = ANY (ARRAY(
        SELECT k.key_id FROM api_keys k
        WHERE k.expires_at < :before
          AND EXISTS (SELECT FROM api_keys later WHERE later.user_id = k.user_id AND later.key_id > k.key_id)
        LIMIT :limit
        FOR UPDATE OF k SKIP LOCKED))
    RETURNING key_id
)
SELECT count(*) FROM deleted;

-- Proofs and challenges that have expired.
-- name: delete_proofs
WITH proofs AS (
    DELETE FROM used_proofs WHERE proof = ANY (ARRAY(
        SELECT proof FROM used_proofs WHERE expires_at < :before LIMIT :limit FOR UPDATE SKIP LOCKED))
    RETURNING proof
), challenges AS (
    DELETE FROM github_challenges WHERE challenge_hash = ANY (ARRAY(
        SELECT challenge_hash FROM github_challenges WHERE expires_at < :before LIMIT :limit FOR UPDATE SKIP LOCKED))
    RETURNING challenge_hash
)
SELECT greatest((SELECT count(*) FROM proofs), (SELECT count(*) FROM challenges));

-- Messages that were archived long ago.
-- name: delete_messages
WITH deleted AS (
    DELETE FROM pgmq.a_gpu_reservations WHERE msg_id = ANY (ARRAY(
        SELECT msg_id FROM pgmq.a_gpu_reservations WHERE archived_at < :before LIMIT :limit FOR UPDATE SKIP LOCKED))
    RETURNING msg_id
)
SELECT count(*) FROM deleted;
