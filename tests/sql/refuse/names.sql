-- Names that are not there, and values of another kind.
-- table: people

-- says: there is no column 'scoer'
-- hint: did you mean 'score'
select count(*) from people where age > 30 and scoer < 3
--                                             ^

-- says: there is no column 'scoer'
select count(*)
from people
where age > 30
  and scoer < 3
--    ^

-- says: there is no column 'Kenya'
-- hint: single quotes
select count(*) from people where nationality = "Kenya"
--                                              ^

-- says: there is no column 'kenya'
select count(*) from people where nationality = kenya
--                                              ^

-- says: there is no column 'salary'
select sum(salary) from people
--         ^

-- says: there is no column 'salary'
select age, count(*) from people group by age, salary
--                                             ^

-- says: there is no column 'salary'
select salary, count(*) from people group by age
--     ^

-- says: there is no column 'salary'
select count(*) from people group by age order by salary
--                                                ^

-- says: there is no column 'salary'
select count(*) filter (where salary > 3) from people
--                            ^

-- says: there is no column 'salary'
select count(*) from people where abs(case when member then salary else 1 end) > 0
--                                                          ^

-- says: there is no table 'q' in FROM
select count(*) from people p where q.age > 3
--                                  ^

-- says: has too many parts
-- hint: people.age
select count(*) from people where main.people.age > 3
--                                ^

-- says: there is no table 'cities'
-- hint: regions
select count(*) from people join cities on city = nationality
--                               ^

-- says: there is no table 'cities'
select count(*) from people where nationality in (select name from cities)
--                                                                 ^

-- says: there is no column 'population'
select count(*) from people where nationality in (select r.population from regions r)
--                                                       ^

-- says: there is no column 'population'
select count(*) from people join regions r on r.country = nationality where r.population > 3
--                                                                          ^

-- says: regions is a table of your own; the release comes first
select count(*) from regions
--                   ^

-- says: two tables are called people
select count(*) from people join regions as people on true
--                                          ^

-- says: two tables are called r
select count(*) from people join regions r on r.country = nationality join grades r on true
--                                                                                ^

-- says: nothing says which row of regions belongs to a person
select count(*) from people, regions
--                           ^

-- says: nothing says which row of regions belongs to a person
select count(*) from people cross join regions where age > 3
--                                     ^

-- says: country is in more than one table
select country, count(*) from people join regions a on a.country = nationality join regions b on b.country = nationality group by 1
--     ^

-- says: RIGHT JOIN is not answered
select count(*) from people right join regions on country = nationality
--                          ^

-- says: FULL JOIN is not answered
select count(*) from people full join regions on country = nationality
--                          ^

-- says: SEMI JOIN is not answered
select count(*) from people semi join regions on country = nationality
--                          ^

-- says: nationality is text, and 3 is a number: write '3'
select count(*) from people where nationality = 3
--                                              ^

-- says: nationality is text, and 3 is a number
select count(*) from people where nationality in ('Kenya', 3)
--                                                         ^

-- says: age is a number, and 'old' is not
select count(*) from people where age > 'old'
--                                      ^

-- says: age is a number, and 'x' is not
select count(*) from people where age between 3 and 'x'
--                                                  ^

-- says: joined is a date, and 2004 is not: write '2024-12-31'
select count(*) from people where joined > 2004
--                                         ^

-- says: joined is a date, and 'soon' is not
select count(*) from people where joined = 'soon'
--                                         ^

-- says: two columns are called n
select count(*) as n, sum(age) as n from people
--                    ^

-- says: more than one partner
select count(*) from people join regions on true

-- says: more than one partner
select count(*) from people where age > (select gdp from regions)
