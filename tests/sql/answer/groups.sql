-- GROUP BY in all its forms, HAVING, ORDER BY, LIMIT.
-- table: people

select nationality, count(*) from people group by nationality

select nationality, count(*) from people group by nationality order by nationality

select nationality, count(*) from people group by nationality order by nationality nulls first

select nationality, count(*) from people group by nationality order by nationality desc

select nationality, count(*) from people group by nationality order by nationality desc nulls first

select nationality, count(*) from people group by nationality order by nationality asc nulls last

select count(*) from people group by nationality

select nationality, member, count(*) from people group by nationality, member order by nationality, member

select member, nationality, count(*) n from people group by 1, 2 order by 3 desc, 1, 2

select member as m, count(*) from people group by m order by m nulls first

select member, "select", count(*) from people group by all order by all

select age, count(*) from people group by age order by age

select (age), count(*) from people group by (age) order by (age) desc limit 7

select age % 10 as digit, count(*), avg(score) from people group by age % 10 order by digit

select age // 10 * 10 as decade, count(*) from people group by decade order by decade

select floor(age / 10) * 10 as decade, count(*) as n from people group by 1 order by 1

select width_bucket(score, 60, 100, 8) as bucket, count(*) from people group by bucket order by bucket

select width_bucket(balance, -40, 40, 4) as bucket, count(*), avg(balance) from people group by 1 order by 1

select case when age < 20 then 'young' when age < 50 then 'middle' else 'old' end as generation, count(*)
from people group by generation order by 2 desc

select case when balance < 0 then 'debt' end as debt, count(*) from people group by 1 order by 1 nulls first

select balance < 0 as debt, count(*), sum(balance) from people group by balance < 0 order by debt

select left(nationality, 1) as letter, count(*) from people group by letter order by letter

select upper(nationality) as land, "größe", count(*) as n from people where member group by all order by n desc, land, 2 limit 10

select length("größe") l, count(*) from people group by l order by l

select height, count(*), avg(age) from people group by height order by height

select round(height) as h, count(*) from people group by round(height) order by h

select "odd name", count(*), sum("odd name") from people where "odd name" is not null group by "odd name" order by 1

select "ODD NAME", COUNT(*) FROM people GROUP BY "Odd Name" ORDER BY "odd NAME"

select coalesce(nationality, 'unknown') as land, count(*) from people group by land order by land

select nationality is null as missing, count(*) from people group by nationality is null order by 1

select nationality, count(*) from people group by nationality having count(*) > 40 order by nationality

select nationality, count(*) from people group by nationality having count(*) > 1000000 or sum(score) > 0 order by nationality limit 0

-- HAVING on what SELECT does not show.
select nationality, count(*) from people group by nationality having avg(score) > 76 order by 1

select nationality, avg(score) from people group by nationality having count(*) > 30 and sum(balance) < 0 order by 1

select nationality, avg(score) from people group by nationality having count(*) < 30 or avg(balance) > 2 order by 1

select nationality, count(*) from people group by nationality having count(*) between 20 and 50 order by 1

select nationality, count(*) from people group by nationality having not count(*) between 20 and 50 order by 1

select nationality, count(*) from people group by nationality having not (count(*) > 50 or avg(age) > 35) order by 1

select nationality, count(*) from people group by nationality having count(*) filter (where member) > 10 order by 1

select nationality, count(*) from people group by nationality having count(*) filter (where member) / count(*) >= 0.25 order by 1

select age, count(*) from people group by age having count(*) = 5 or count(*) <> 6 and count(*) >= 20 order by age

select count(*) from people having count(*) > 10

select count(*) from people having count(*) < 10

select age, count(*) as n from people group by age order by n desc, age limit 10

select age, count(*) as n from people group by age order by n desc, age limit 10 offset 5

select age, count(*) as n from people group by age order by age offset 50

select age, count(*) as n from people group by age order by age limit 3 offset 1000

select age, count(*) from people group by age order by count(*) desc, age limit 4

select nationality, avg(score) as mean from people group by nationality order by sum(balance), nationality

select nationality, avg(score) as mean from people group by nationality order by avg(score) + count(*) / 10 desc

select nationality, count(*) from people group by nationality order by 2 desc, 1 nulls first limit 3

select nationality, avg("odd name") as a from people where age > 60 group by nationality order by a nulls first, nationality

select member, stddev(score), corr(age, score), avg(balance) from people group by member order by member

select member, "select", count(*), 100.0 * sum(balance) / sum(score) as ratio from people group by member, "select" order by member, "select"

select "größe", count(*) filter (where member) as yes, count(*) filter (where not member) as no,
       count(*) filter (where member is null) as unknown
from people group by "größe" order by "größe"

select year(joined) as year, member, avg(score) from people where age between 20 and 50
group by year, member having count(*) > 3 order by year desc, member

select p.member, count(*) from people as p group by p.member order by p.member

select count(*) as n from people group by age, member order by n desc, age, member limit 3
