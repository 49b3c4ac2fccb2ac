-- Expressions that are no function of one row, or of no known kind.
-- table: people

-- says: is not a function of the row
select count(*) from people where random() < 0.5
--                                ^

-- says: RANDOM
select sum(random()) from people
--         ^

-- says: CURRENT_DATE cannot be used here
-- hint: write the value itself
select count(*) from people where joined > current_date
--                                         ^

-- says: is not a function of the row
select count(*) from people where joined > now()
--                                         ^

-- says: write the value itself
select count(*) from people where age(joined) > interval 3 year
--                                ^

-- says: write the value itself
select count(*) from people where joined < today()
--                                         ^

-- says: write the value itself
select count(*) from people where current_timestamp > '2020-01-01'
--                                ^

-- says: write the value itself
select count(*) from people where uuid() = 'x'
--                                ^

-- says: cannot be used here
select count(*) from people where getenv('HOME') = 'x'
--                                ^

-- says: cannot be used here
select count(*) from people where current_setting('threads') = '1'
--                                ^

-- says: cannot be used here
select count(*) from people where read_text('/etc/passwd') = 'x'
--                                ^

-- says: cannot be used here
-- hint: docs/reference/sql.md
select count(*) from people where frobnicate(age) > 3
--                                ^

-- says: cannot be used here
-- hint: docs/reference/sql.md
select sum(frobnicate(age)) from people
--         ^

-- says: cannot be used here
select count(*) from people where md5(nationality) = 'x'
--                                ^

-- says: cannot be used here
select count(*) from people where nextval('s') > 0
--                                ^

-- says: cannot be used here
select count(*) from people where age = any([1, 2, 3])
--                                          ^

-- says: cannot be used here
select count(*) from people where [age, score][1] > 3
--                                ^

-- says: cannot be used here
select count(*) from people where {'a': age}.a > 3
--                                ^

-- says: cannot be used here
select count(*) from people where list_contains([1, 2], age)
--                                ^

-- says: cannot be used here
select count(*) from people where len(list_filter([1, 2], x -> x > age)) > 0
--                                    ^

-- says: cannot be used here
select count(*) from people where map {'a': 1} is not null
--                                ^

-- says: cannot be used here
select count(*) from people where nationality[1] = 'K'
--                                ^

-- says: the type BLOB is not used here
-- hint: cast to INTEGER
select count(*) from people where nationality::blob = 'x'
--                                ^

-- says: the type JSON is not used here
select count(*) from people where cast(nationality as json) is null
--                                ^

-- says: is not used here
select count(*) from people where age::integer[] is null
--                                ^

-- says: is not used here
select count(*) from people where cast(age as struct(a integer)) is null
--                                ^

-- says: pads to a length
select count(*) from people where lpad(nationality, 1000000000, 'x') = 'x'
--                                ^

-- says: pads to a length
select count(*) from people where rpad(nationality, age, 'x') = 'x'
--                                ^

-- says: XOR beside AND or OR can be read in two ways
-- hint: parentheses
select count(*) from people where age > 3 xor member and "select"
--                                        ^

-- says: XOR beside AND or OR can be read in two ways
select count(*) from people where member or age > 3 xor "select"
--                                                  ^

-- says: is of type BIGINT, not true or false
-- hint: compare it
select count(*) from people where age
--                                ^

-- says: is of type BIGINT, not true or false
select count(*) from people where member and age + 1
--                                           ^

-- says: is of type VARCHAR, not true or false
select count(*) from people where nationality
--                                ^

-- says: is of type DATE, not true or false
select count(*) filter (where joined) from people
--                            ^

-- says: only numbers have sums
select sum(nationality) from people
--         ^

-- says: only numbers have sums
select avg(joined) from people
--         ^

-- says: only numbers have sums
select median(nationality) from people
--            ^

-- says: only numbers have sums
select stddev(nationality || 'x') from people
--            ^

-- says: does not fit the table
select count(*) from people where nationality > 3 + 'x'
--                                ^

-- says: does not fit the table
select count(*) from people where year(age) = 3
--                                ^

-- says: does not fit the table
select count(*) from people where substring(nationality) = 'K'
--                                ^

-- says: is not a finite number
select sum(ln(balance + 50)) from people
--         ^

-- says: is not a finite number
select avg(1e308 * age * 10) from people
--         ^

-- says: more than one row
select count(*) from people where count(*) > 3
--                                ^

-- says: more than one row
select count(*) from people where age > avg(age)
--                                      ^

-- says: more than one row
select count(*) from people where sum(age) over () > 3
--                                ^

-- says: more than one row
select count(*) from people where row_number() over (order by age) < 10
--                                ^

-- says: more than one row
select count(*) from people where age > (select avg(age) from people)
--                                                            ^

-- says: more than one row
select count(*) from people p where exists (select 1 from p where age > 3)
--                                                        ^

-- says: write the value itself into the SQL
select count(*) from people where age > ?
--                                      ^

-- says: write the value itself into the SQL
select count(*) from people where age > $1
--                                      ^

-- says: write the value itself into the SQL
select count(*) from people where age > :most
--                                      ^

-- says: cannot be used here
select count(*) from people where nationality collate nocase = 'kenya'
--                                ^

-- says: cannot be used here
select count(*) from people where joined at time zone 'UTC' > '2004-01-01'
--                                ^

-- says: cannot be used here
select count(*) from people where columns('a.*') > 3
--                                ^

-- says: cannot be used here
select count(*) from people where date() > 0
--                                ^

-- says: cannot make groups
select count(*) from people group by ('Kenya', age)
--                                   ^

-- says: cannot make groups
select count(*) from people group by null
--                                   ^

-- says: not SQL
select sum(least()) from people
--               ^

-- says: cannot be used here
select count(*) from people where soundex(nationality) = 'K'
--                                ^

-- says: cannot be used here
select count(*) from people where nationality is json
--                                               ^

-- says: cannot be used here
select count(*) from people where repeat(nationality, 1000000000) = 'x'
--                                ^

-- says: cannot be used here
select count(*) from people where exists (from regions select unnest([1]))
--                                                            ^

-- says: cannot be used here
select count(*) from people where age <> ()
--                                       ^

-- says: cannot be used here
select count(*) from people where width_bucket(age) = 3
--                                ^

-- says: beyond ±1e70
select avg(power(age, 83)) from people
--         ^

-- says: cannot be used here
select count(*) from people where floor(age, 1) > 3
--                                ^

-- says: only numbers have sums
select avg((age, 83)) from people
--         ^

-- says: only numbers have sums
select sum(joined - timestamp '2004-01-01') from people
--         ^
