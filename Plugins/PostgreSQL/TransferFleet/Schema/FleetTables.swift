/// The migrations of the fleet's tables.
enum FleetTables {
    static let migration1 = """
        CREATE TABLE fleet (
            singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
            id uuid NOT NULL DEFAULT gen_random_uuid(),
            version integer NOT NULL,
            minimum_member integer NOT NULL DEFAULT 1,  -- the oldest version of members that may join
            max_sessions integer,
            is_strict boolean NOT NULL DEFAULT false,
            is_stopped boolean NOT NULL DEFAULT false,
            order_revision bigint NOT NULL DEFAULT 0,
            revision bigint NOT NULL DEFAULT 0,         -- of the last event
            mark bigint NOT NULL DEFAULT 0              -- the highest mark of a session
        );
        INSERT INTO fleet(version) VALUES (1);
        CREATE TABLE account (
            name text PRIMARY KEY,
            definition text NOT NULL,                   -- Account as JSON
            max_sessions integer
        );
        CREATE TABLE member (
            name text PRIMARY KEY,
            identity uuid NOT NULL,                     -- of the member's storage folder
            slots integer NOT NULL,
            labels text[] NOT NULL,
            version integer NOT NULL,
            process bigint NOT NULL,
            joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            live_until timestamptz NOT NULL
        );
        -- Accounts that a member can't use, for example because it lacks their credentials.
        CREATE TABLE refusal (
            account text NOT NULL REFERENCES account ON DELETE CASCADE,
            member text NOT NULL REFERENCES member ON DELETE CASCADE,
            error text NOT NULL,                        -- TransferError as JSON
            PRIMARY KEY (account, member)
        );
        -- A session holds a slot while it has an owner, in any state. Heartbeats change only columns without an index.
        CREATE TABLE session (
            id uuid PRIMARY KEY,
            position bigint NOT NULL,                   -- the order, with gaps
            account text NOT NULL REFERENCES account,
            place text NOT NULL,                        -- anywhere, 'member NAME' or 'label NAME'
            state text NOT NULL,
            lane smallint NOT NULL DEFAULT 4,           -- 0 now, 1 next, 2 released, 3 interrupted, 4 none
            mark bigint NOT NULL DEFAULT 0,             -- in lanes 0 and 1, sessions with higher marks start first
            not_before timestamptz,
            after_id uuid,                              -- the session on which this one depends, until it has ended
            after_any boolean NOT NULL DEFAULT false,
            displaced_by uuid,
            is_removed boolean NOT NULL DEFAULT false,  -- deleted once its owner has given it back
            owner text,
            lease_epoch bigint NOT NULL DEFAULT 0,
            lease_until timestamptz,
            deduplication_key text,
            statistics text NOT NULL,                   -- SessionStatistics as JSON
            attempts integer NOT NULL DEFAULT 0,
            error text,                                 -- TransferError as JSON
            created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            started_at timestamptz,
            ended_at timestamptz
        ) WITH (fillfactor = 70);
        CREATE INDEX session_waiting ON session(account, place, lane, mark DESC, position)
            WHERE state = 'waiting' AND owner IS NULL AND after_id IS NULL AND displaced_by IS NULL;
        CREATE INDEX session_owner ON session(owner) WHERE owner IS NOT NULL;
        CREATE INDEX session_position ON session(position, id);
        CREATE INDEX session_after ON session(after_id) WHERE after_id IS NOT NULL;
        CREATE INDEX session_displaced ON session(displaced_by) WHERE displaced_by IS NOT NULL;
        CREATE INDEX session_account ON session(account);
        CREATE UNIQUE INDEX session_deduplication ON session(deduplication_key)
            WHERE deduplication_key IS NOT NULL AND state <> 'completed' AND NOT is_removed;
        CREATE TABLE content (
            session uuid PRIMARY KEY REFERENCES session ON DELETE CASCADE,
            draft text NOT NULL                         -- SessionDraft as JSON
        );
        CREATE TABLE session_tag (
            tag text NOT NULL,
            session uuid NOT NULL REFERENCES session ON DELETE CASCADE,
            PRIMARY KEY (tag, session)
        );
        CREATE INDEX session_tag_session ON session_tag(session);
        -- The durable progress of files. Each part of a file's progress replaces its predecessor.
        CREATE TABLE progress (
            session uuid NOT NULL REFERENCES session ON DELETE CASCADE,
            position bigint NOT NULL,
            part text NOT NULL,                         -- 0restart, 'checkpoint ADDRESS', end or record
            generation bigint NOT NULL,
            event text NOT NULL,                        -- FileEvent as JSON
            PRIMARY KEY (session, position, part)
        );
        CREATE TABLE event (
            revision bigint PRIMARY KEY,
            at timestamptz NOT NULL DEFAULT clock_timestamp(),
            kind text NOT NULL                          -- QueueEvent as JSON
        );
        """

    /// Part files of former owners, sessions that a member can't run, and the removal of completed sessions.
    static let migration2 = """
        -- The epoch in the names of part files. A lease that ended without a report makes its successor use new part files, because the former owner may
        -- still have its part files open.
        ALTER TABLE session ADD COLUMN part_epoch bigint NOT NULL DEFAULT 0;
        -- Sessions that a member can't run, for example because their files do not exist on it.
        CREATE TABLE session_refusal (
            session uuid NOT NULL REFERENCES session ON DELETE CASCADE,
            member text NOT NULL REFERENCES member ON DELETE CASCADE,
            error text NOT NULL,                        -- TransferError as JSON
            PRIMARY KEY (session, member)
        );
        ALTER TABLE fleet ADD COLUMN retention text;    -- Retention as JSON; NULL to keep all completed sessions
        CREATE INDEX session_completed ON session(ended_at, id) WHERE state = 'completed';
        """

    /// Rate limits, in bytes per second.
    static let migration3 = """
        ALTER TABLE fleet ADD COLUMN rate_limit bigint;
        ALTER TABLE account ADD COLUMN rate_limit bigint;
        CREATE FUNCTION pg_temp.rate_limit(definition text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
            RETURN (definition::json->>'rateLimit')::bigint;
        EXCEPTION WHEN others THEN
            RETURN NULL;                                -- the account can't be read
        END $$;
        UPDATE account SET rate_limit = pg_temp.rate_limit(definition);
        """

    /// The number of sessions, because counting millions of them takes seconds.
    static let migration4 = """
        ALTER TABLE fleet ADD COLUMN sessions bigint NOT NULL DEFAULT 0;    -- those that are not removed
        UPDATE fleet SET sessions = (SELECT count(*) FROM session WHERE NOT is_removed);
        DROP INDEX session_position;
        CREATE INDEX session_position ON session(position, id) WHERE NOT is_removed;
        """

    /// Excludes members of earlier versions, because they can't read the progress of forms.
    static let migration5 = "UPDATE fleet SET minimum_member = 2;"

    /// Requests to the members that have sessions, and removed sessions whose rows are deleted in several transactions. Members of earlier versions
    /// ignore the requests.
    static let migration6 = """
        ALTER TABLE session ADD COLUMN run_requests bigint NOT NULL DEFAULT 0;  -- since the session was last taken
        ALTER TABLE account ADD COLUMN retries bigint NOT NULL DEFAULT 0;       -- requests to try the account's endpoints again
        CREATE INDEX session_removed ON session(id) WHERE is_removed;
        """
}
