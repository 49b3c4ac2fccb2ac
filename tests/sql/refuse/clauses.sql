-- Clauses and statements that are no question about sums over rows.
-- table: people

-- says: SELECT * is not answered
-- hint: statistics
select * from people
--     ^

-- says: cannot be used here
-- hint: name the columns
select people.* from people
--            ^

-- says: age is neither an aggregate nor in GROUP BY
-- hint: GROUP BY
select age from people
--     ^

-- says: age is neither an aggregate nor in GROUP BY
select age, count(*) from people
--     ^

-- says: age is neither an aggregate nor in GROUP BY
select age, count(*) from people group by score
--     ^

-- says: SELECT has no aggregate
-- hint: add count(*)
select age from people group by age
--     ^

-- says: is neither an aggregate nor in GROUP BY
select 1 from people
--     ^

-- says: is neither an aggregate nor in GROUP BY
select age + score, count(*) from people group by age
--     ^

-- says: a column beside aggregates
select count(*) + age from people group by age
--                ^

-- says: is neither an aggregate nor in GROUP BY
select count(*) from people group by age order by score
--                                                ^

-- says: DISTINCT is not answered
select distinct age from people
--     ^

-- says: is not estimated
-- hint: distinct values
select count(distinct age) from people
--     ^

-- says: is not estimated
-- hint: distinct values
select approx_count_distinct(age) from people
--     ^

-- says: is not estimated
-- hint: quantile_disc
select max(age) from people
--     ^

-- says: is not estimated
-- hint: quantile_disc
select count(*), min(score) from people
--               ^

-- says: is not estimated
select first(age) from people
--     ^

-- says: is not estimated
select any_value(nationality) from people
--     ^

-- says: is not estimated
-- hint: ORDER BY count(*) DESC LIMIT 1
select mode(nationality) from people
--     ^

-- says: is not estimated
select list(age) from people
--     ^

-- says: is not estimated
select array_agg(age) from people
--     ^

-- says: is not estimated
select string_agg(nationality, ',') from people
--     ^

-- says: is not estimated
select arg_max(age, score) from people
--     ^

-- says: PRODUCT(age) cannot be used here
select product(age) from people
--     ^

-- says: is not estimated
select bool_and(member) from people
--     ^

-- says: is not estimated
select skewness(age) from people
--     ^

-- says: is not estimated
select sum(count(*)) from people
--     ^

-- says: is not estimated
select avg(sum(age) + 1) from people
--     ^

-- says: is not estimated
-- hint: windows
select sum(age) over (partition by member) from people
--     ^

-- says: is not estimated
-- hint: windows
select row_number() over () from people
--     ^

-- says: is not estimated
-- hint: windows
select rank() over (order by age) from people
--     ^

-- says: count one thing
select count(age, score) from people
--     ^

-- says: write count(*)
select count(* exclude (age)) from people
--     ^

-- says: between 0 and 1
select quantile_cont(age, 1.5) from people
--     ^

-- says: between 0 and 1
select quantile_cont(age, [0.1, 0.9]) from people
--     ^

-- says: between 0 and 1
select quantile_disc(age, score) from people
--     ^

-- says: within group
select percentile_cont(0.5) within group (order by age desc) from people
--     ^

-- says: between aggregates there may be
select concat(count(*), 'x') from people
--     ^

-- says: between aggregates there may be
select case when count(*) > 3 then 1 end from people
--     ^

-- says: this must be a number
select count(*) > 3 from people
--     ^

-- says: this must be a comparison
select count(*) from people having count(*)
--                                 ^

-- says: is an aggregate, and cannot make groups
select count(*) from people group by count(*)
--                                   ^

-- says: is an aggregate, and cannot make groups
select count(*) from people group by 1
--     ^

-- says: SELECT has no column 7
select age, count(*) from people group by 7
--                                        ^

-- says: SELECT has no column 9
select age, count(*) from people group by age order by 9
--                                                     ^

-- says: LIMIT must be a whole number
select age, count(*) from people group by age limit 3 + 4
--                                                  ^

-- says: LIMIT must be a whole number
select age, count(*) from people group by age limit age
--                                                  ^

-- says: LIMIT must be a whole number
select age, count(*) from people group by age limit 10%
--                                                  ^

-- says: OFFSET must be a whole number
select age, count(*) from people group by age limit 3 offset -1
--                                                           ^

-- says: UNION is not answered
select count(*) from people union all select count(*) from people
--                          ^

-- says: INTERSECT is not answered
select count(*) from people intersect select 3
--                          ^

-- says: FROM must name the release's table
select count(*) from read_csv('/etc/passwd')
--                   ^

-- says: FROM must name the release's table
select count(*) from read_parquet('*.parquet')
--                   ^

-- says: FROM must name the release's table
select count(*) from glob('/*')
--                   ^

-- says: FROM must name the release's table
select count(*) from range(10)
--                   ^

-- says: FROM must name the release's table
select count(*) from unnest([1, 2])
--                   ^

-- says: FROM must name the release's table
select count(*) from (values (1), (2))
--                   ^

-- says: FROM must name the release's table
-- at: 1:1
select count(*)

-- says: joining a subquery is not answered
select count(*) from people join (select 1) on true
--                               ^

-- says: no table
select count(*) from people where age in (select 1 from 'file.csv')
--                                                      ^

-- says: is not answered
select count(*) from people tablesample 10%
--                          ^

-- says: is not answered
select count(*) from people using sample 10
--                                ^

-- says: is not estimated
-- hint: windows
select count(*) from people qualify row_number() over () = 1
--                                  ^

-- says: WINDOW is not answered
select count(*) from people window w as (order by age)
--                          ^

-- says: renaming columns is not answered
select count(*) from people as p(a, b)
--                               ^

-- says: is not answered
select count(*) from people pivot (count(*) for age in (20, 30))
--                          ^

-- says: FOR UPDATE is not answered
select count(*) from people for update
--                          ^

-- says: is not answered
select count(*) from people positional join regions
--                          ^

-- says: is not answered
select count(*) from people asof join regions on country >= nationality
--                          ^

-- says: is not answered
select count(*) from people natural join regions
--                          ^

-- says: FROM must name
select count(*) from people, lateral (select 1) as l
--                           ^

-- says: 2 statements were given
-- hint: ask one query
select count(*) from people; select 1

-- says: the SQL text is empty
;

-- says: DROP is not a question about the data
-- at: 1:1
drop table people

-- says: COPY is not a question about the data
-- at: 1:1
copy people to 'out.csv'

-- says: EXPORT is not a question about the data
-- at: 1:1
export database 'folder'

-- says: ATTACH is not a question about the data
-- at: 1:1
attach 'file.db'

-- says: PRAGMA is not a question about the data
-- at: 1:1
pragma database_list

-- says: INSTALL is not a question about the data
-- at: 1:1
install httpfs

-- says: SET is not a question about the data
-- at: 1:1
set threads = 1

-- says: CALL is not a question about the data
-- at: 1:1
call pragma_version()

-- says: EXPLAIN is not a question about the data
-- at: 1:1
explain select count(*) from people

-- says: CREATE is not a question about the data
-- at: 1:1
create table t as select * from people

-- says: DELETE is not a question about the data
-- at: 1:1
delete from people

-- says: HELLO is not a question about the data
-- at: 1:1
hello

-- says: not SQL
select count(* from people
--             ^

-- says: not SQL
select count(*) from people where age >
--                                    ^

-- says: not SQL
select count(*) frm people
--                  ^

-- says: not SQL
select count(*) from people where age >> > 3
--                                       ^

-- says: not SQL
select count(*) from people where (age > 3 or
--                                         ^

-- says: not SQL
select count(*) from people where nationality = 'Kenya
--                                              ^

-- says: not SQL
select count(*) from people where age between 3
--                                            ^

-- says: not SQL
select count(*) from people group age
--                                ^

-- says: is not answered
select count(*) into other from people
--              ^

-- says: a column beside aggregates
select count(*) from people having age > 3
--                                 ^

-- says: nothing stands before this comma
select quantile(, 0.5) from people
--              ^

-- says: share is one number
select quantile_cont(age) from people
--     ^

-- says: more than one
select count(*) from people left join regions on true

-- says: more than one
select count(*) from people join grades on low <= score

-- says: is not estimated
select count(*) filter (where true) over () from people
--     ^

-- says: is not estimated
select sum(distinct age) from people
--     ^

-- says: is not a question about the data
-- at: 1:1
values (1)

-- says: SELECT * is not answered
-- at: 1:1
table people

-- says: is not a question about the data
-- at: 1:1
(select count(*) from people)

-- says: is not a question about the data
-- at: 1:1
describe people

-- says: is a word of SQL
select count(asc) from people
--           ^

-- says: BETWEEN needs AND
select count(*) from people where age between 20 50
--                                    ^

-- says: not closed
select quantile_cont(age, 0.25, count(*) from people
--                  ^

-- says: not SQL
select count(*) from people where age > 3)
--                                       ^

-- says: nothing stands before this comma
select , count(*) from people
--     ^

-- says: nothing stands before this comma
select count(*) from people where age in (6, , 8)
--                                           ^

-- says: WHERE stands too late
select age, count(*) from people group by age where age > 30
--                                            ^

-- says: GROUP BY stands too late
select age, count(*) from people order by age group by age
--                                            ^

-- says: null is a word of SQL
select count(*) from people null
--                          ^

-- says: group is a word of SQL
select count(*) from people group
--                          ^

-- says: JOIN regions has no ON
select count(*) from people left join regions where country = nationality
--                                    ^

-- says: JOIN regions has no ON
select count(*) from people join regions
--                               ^

-- says: AND, OR and NOT stand between comparisons
select age, count(*) from people group by age having count(*) * 5 or count(*) > 3
--                                                   ^

-- says: this must be a comparison
select age, count(*) from people group by age having (count(*) > 3) + 1
--                                                   ^

-- says: is not estimated
select frobnicate(age) filter (where member) from people
--     ^

-- says: two texts stand side by side
select count(*) from people where nationality in ('Kenya' 'Ghana')
--                                                        ^

-- says: nothing stands before this comma
select age, count(*) from people group by , age
--                                        ^

-- says: nothing stands after GROUP BY
select age, count(*) from people group by
--                               ^

-- says: nothing stands after ,
select count(*) from people where age > 3 ,
--                                        ^

-- says: nothing stands after +
select count(+) from people
--           ^

-- says: this star has nothing to multiply
select count(*) from people * where age > 3
--                          ^

-- says: one argument too many
select corr(age, score, balance) from people
--     ^

-- says: one argument too many
select count_if(member, true) from people
--     ^

-- says: not SQL
-- hint: write LIMIT 3 at the end
select top 3 city, count(*) from people group by city
--         ^

-- says: people cannot be joined with itself
-- hint: group by
select count(*) from people a join people b on a.city = b.city
--                                 ^
