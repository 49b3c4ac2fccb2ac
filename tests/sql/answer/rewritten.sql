-- WITH, derived tables, aliases, casts, subtotals and shares: rewritten as one SELECT.
-- table: people

with old as (select * from people) select count(*) from old

with old as (select * from people where age > 60) select count(*), avg(score) from old where member

with old as (select * from people where age > 60), members as (select * from old where member)
select nationality, count(*) as n from members group by nationality order by n desc, nationality nulls first

with p as (select age, score - 60 as points, nationality as land from people where score > 70)
select land, count(*), avg(points) from p where points < 25 group by land order by land

with p(a, b) as (select age, score from people) select count(*), corr(a, b) from p where a < b

with people as (select * from people where member) select count(*) from people

with p as (select *, age // 10 * 10 as decade from people)
select decade, count(*) from p group by decade order by decade

with p as (select *, age + 1 as next from people where member)
select p.next, count(*) from p where p.age > 60 group by p.next order by 1

with g as (select nationality, count(*) as n, avg(score) as mean from people group by nationality)
select nationality, n, mean from g where n > 30 order by n desc, nationality nulls first

with g as (select nationality, count(*) as n from people group by nationality)
select * from g order by n, nationality nulls first

with g as (select nationality, count(*) as n, sum(score) as s from people group by 1)
select nationality, s / n as mean, n * 2 as twice from g where n >= 10 and nationality is not null order by mean

with g as (select nationality, member, count(*) as n from people group by all)
select n, nationality from g where member and n between 3 and 20 order by n, nationality nulls first limit 4

with g as (select nationality, count(*) as n from people group by nationality having count(*) > 20)
select nationality, n from g where n < 60 order by 1

with g as (select age // 10 as decade, count(*) as n from people group by decade)
select decade * 10, n from g where decade > 2 order by decade

with g as (select nationality, member, count(*) as n, sum(balance) as s from people group by all)
select nationality, sum(n) as n, sum(s) as s from g group by nationality order by nationality

with g as (select nationality, count(*) as n from people group by all) select sum(n) from g where nationality like '%a'

with g as (select nationality, member, count(*) as c from people group by all) select nationality, sum(c) from g group by nationality
having sum(c) > 30 and sum(c) < 1000 order by 1

with total as (select count(*) as n from people),
     g as (select nationality, count(*) as c from people group by nationality)
select nationality, c * 100.0 / total.n as pct from g, total order by nationality

with total as (select count(*) as n, avg(age) as a from people)
select nationality, count(*) / n, avg(age) - a from people cross join total group by nationality, n, a order by nationality

select count(*) from (select * from people)

select count(*) from (select * from people where age > 40) as x

select x.nationality, count(*) from (select nationality, age from people where age > 40) as x where x.age < 60
group by x.nationality order by x.nationality

select count(*) from (select a from (select age + 1 as a from people) where a > 20) as x(b) where b < 50

select nationality, n from (select nationality, count(*) n from people group by nationality) as g where n > 25 order by n desc, 1

select avg(s) as mean from (select age + score as s from people where member) x

select n + 1 from (select count(*) as n from people)

select nationality, n from (select nationality, count(*) as n from people group by nationality order by n desc, nationality limit 3)

select r.continent, count(*) from (select nationality as land from people where age > 30) as p
join regions r on p.land = r.country group by r.continent order by 1

select count(*) from (select * from people) p where nationality in (select country from regions where gdp < 10000)

-- duckdb: select age + score as s, (age + score) % 2 as odd, count(*) from people group by 1, 2 order by 1, 2 limit 20
select age + score as s, s % 2 as odd, count(*) from people group by s, odd order by s, odd limit 20

select count(*) as n, n / 10.0 as tenth, tenth + n as sum_of_both from people

select nationality, count(*) as n, sum(score) as total, total / n as mean from people
group by nationality having n > 20 and mean > 70 order by total / n desc

select age // 10 as decade, decade * 10 as years, count(*) as n from people where decade > 2 group by decade order by n * 2 desc, decade

select member as m, count(*) as n from people group by m order by n + 1, m

select age + 1 as next, count(*) from people group by age order by age

select score as age, count(*) from people where age > 60 group by score order by age

select nationality, count(*)::int as n, avg(score)::int as mean, sum(balance)::bigint from people group by 1 order by 1

select cast(count(*) as integer) * 2, round(avg(score)::numeric, 1), count(*)::double / 3, avg(age)::decimal(10, 2) from people

select count(*) filter (where member)::double / count(*), coalesce(sum(age), 0), cast(avg(age) as double) from people

-- duckdb: select count(*) as "how many" from "people" where "age" > 40 and "odd name" = 5
select count(*) as `how many` from `people` where `age` > 40 and `odd name` = 5

select nationality, count(*) as n from people group by nationality order by n desc, nationality fetch first 3 rows only

select nationality, count(*) as n from people group by nationality order by n desc, nationality offset 2 rows fetch next 3 rows only

select age, count(*) from people group by age order by age fetch first row only

select age, count(*) from people group by age having age > 60 order by age

select age // 10, count(*) from people group by age // 10 having age // 10 > 3 and count(*) > 5 order by 1

select nationality, count(*) from people group by rollup(nationality) order by nationality, 2

select nationality, member, count(*) as n, avg(score) from people group by rollup(nationality, member) order by all

select nationality, member, count(*) as n from people where age > 30 group by cube(nationality, member) order by n desc, 1, 2 limit 12

select nationality, "select", count(*) as n from people group by grouping sets ((nationality, "select"), (nationality), ()) order by all

select member, nationality, "select", count(*) as n from people group by member, rollup(nationality, "select") order by all

select member, nationality, "select", count(*) from people group by grouping sets ((member), rollup(nationality, "select")) order by all

select age // 20 as a, member, count(*) as n from people group by rollup(1, 2) having count(*) > 10 order by all

-- duckdb: select member, count(*) from people group by rollup(member) order by all
select member, count(*) from people group by member with rollup order by all

select nationality, count(*), sum(count(*)) over () from people group by nationality order by nationality

select nationality, count(*) * 100.0 / sum(count(*)) over () as pct from people where age > 30 group by nationality order by nationality

select nationality, member, count(*) / sum(count(*)) over (partition by nationality) as share from people
group by nationality, member order by nationality, member

select nationality, member, round(100.0 * count(*) / sum(count(*)) over (partition by member), 1) as pct from people
group by nationality, member order by nationality, member

select nationality, sum(balance) / sum(sum(score)) over () as share from people group by nationality order by nationality

select height, count(*)::double / sum(count(*)) over () from people group by height order by height

select joined, count(*) / sum(count(*)) over () as s from people where joined < '2004-02-01' group by joined order by s desc, joined limit 5

select age % 7 as r, "odd name", count(*) / sum(count(*)) over (partition by "odd name") as s from people group by r, "odd name" order by all

select date_trunc('month', joined) as m, count(*) / sum(count(*)) over () as s from people group by m order by m

select nationality, count(*) filter (where member) / sum(count(*) filter (where member)) over () as s from people group by 1 order by 1

-- duckdb: select nationality, count(*) as n, count(*) * 100.0 / sum(count(*)) over () as pct from people group by nationality order by pct desc, 1
select nationality, count(*) as n, n * 100.0 / sum(n) over () as pct from people group by nationality order by pct desc, 1

with g as (select nationality, count(*) as n from people where score > 70 group by nationality)
select nationality, n, 100.0 * n / sum(n) over () as pct from g order by nationality

with g as (select nationality, count(*) as n, 100.0 * count(*) / sum(count(*)) over () as pct from people group by nationality)
select nationality, pct from g where pct > 8 and nationality <> 'Kenya' order by pct desc

select nationality, count(*) / sum(count(*)) over () as s from people group by nationality qualify s > 0.05 order by nationality

select nationality, count(*) * 100.0 / (select count(*) from people) as pct from people where member group by nationality order by nationality

select count(*) / (select count(*) from people) as share from people where age > 40

select nationality, avg(score) - (select avg(score) from people) as off from people group by nationality order by off desc, 1

select nationality, count(*) from people group by nationality having count(*) > (select count(*) * 0.1 from people) order by 1

select nationality, sum(age) from people group by nationality having sum(age) > (select avg(age) from people) * 20 order by 1

select nationality, count(*) from people group by nationality order by count(*) / (select count(*) from people where member) desc, 1

with m as (select * from people where member)
select count(*) / (select count(*) from people) as share, (select avg(age) from m) - avg(age) as younger from people

select r.continent, count(*) / sum(count(*)) over () as share from people join regions r on nationality = r.country
group by r.continent order by 1
